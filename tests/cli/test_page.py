"""The page on the command line, run as it stands."""

from tests.pages import commands


def test_every_command_of_the_page_runs(tamis, folder):
    ran = 0
    for words in commands("docs/command_line.rst"):
        if words == [
            "--install-completion"
        ]:  # which would write to the shell of who runs the tests
            continue
        result = tamis(*words)
        assert result.exit_code == 0, (words, result.output)
        ran += 1
    assert ran == 14
    assert sorted(path.name for path in (folder / "tamis-wine").iterdir()) == [
        "ranking.csv",
        "record.json",
        "report.html",
        "selected.csv",
    ]
