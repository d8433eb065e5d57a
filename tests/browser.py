"""Control of Chromium over its debugging pipe: JSON over two file descriptors, no other library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

#: Seconds without a reply after which a browser is treated as lost.
PATIENCE = 60


def chromium():
    """Return the path of Chromium under one of its usual names, or None."""
    if os.name == "nt":  # processes there do not inherit numbered pipes
        return None
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


def _pipe():
    """Return a pipe whose ends have high numbers, because Chromium reads and writes 3 and 4."""
    import fcntl  # not on Windows

    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """A headless browser with one tab, which records requests and errors."""

    def __init__(self, *, width=1180, height=900):
        self.home = tempfile.TemporaryDirectory(prefix="tamis-browser-")
        theirs_in, self.out = _pipe()
        self.back, theirs_out = _pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--hide-scrollbars", "--no-first-run", f"--user-data-dir={self.home.name}",
            "--disable-background-networking", "--disable-component-update",
            f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip

        def low_numbers():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.process = subprocess.Popen(
            [chromium(), *options],
            pass_fds=(3, 4),
            preexec_fn=low_numbers,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.events, self.session = count(1), b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        try:
            self.session = None
            self._send("Browser.close", {})
            self.process.wait(timeout=PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.back)
        self.home.cleanup()

    def _send(self, method, params):
        message = {"id": next(self.number), "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        return message["id"]

    def _next(self):
        """Return the next message. Events are recorded on the way."""
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self.back, 1 << 20)
            if not part:
                raise EOFError("Chromium has ended")
            self.rest += part
        line, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message

    def ask(self, method, **params):
        """Send a command and return its result."""
        number = self._send(method, params)
        while (message := self._next()).get("id") != number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def open(self, path):
        """Load a file, and return the seconds until it was ready."""
        self.events.clear()
        begun = time.perf_counter()
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            self._next()
        return time.perf_counter() - begun

    def run(self, script):
        """Return the value of a JavaScript expression. A promise is awaited."""
        found = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def settle(self):
        """Wait until the page is drawn."""
        self.run("new Promise(r => setTimeout(() => requestAnimationFrame(() => r(1)), 150))")

    @property
    def requests(self):
        """Return the addresses that the page requested, except its own."""
        asked = [
            p["request"]["url"] for name, p in self.events if name == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]

    @property
    def complaints(self):
        """Return the errors and warnings of the page and of the browser."""
        said = []
        for name, params in self.events:
            if name == "Runtime.exceptionThrown":
                said.append(params["exceptionDetails"]["text"])
            elif name == "Log.entryAdded":
                said.append(params["entry"]["text"])
            elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                said.append(str(params["args"]))
        return said

    def resize(self, width, height):
        """Change the size of the window, for example to that of a phone."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def prefer(self, scheme):
        """Set the preferred colour scheme, "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def show_as(self, media):
        """Show the page as on a "screen" or as in "print"."""
        self.ask("Emulation.setEmulatedMedia", media=media)

    def press(self, key, code, number):
        """Press and release a key."""
        known = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        if key == "Enter":
            known["text"] = "\r"
        self.ask("Input.dispatchKeyEvent", type="keyDown", **known)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **known)

    def picture(self, path, *, height=None):
        """Write a screenshot of the whole page, or of its top."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": height or size["height"],
            "scale": 1,
        }
        made = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(made["data"]))

    def printed(self, path):
        """Write the page as PDF, as it is printed."""
        made = self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=False)
        Path(path).write_bytes(base64.b64decode(made["data"]))
