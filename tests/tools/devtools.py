"""A headless Chromium, spoken to through its DevTools pipe: file descriptors 3 and 4, messages of
JSON that end in a zero byte. Standard library only."""
import base64
import json
import os
import select
import subprocess
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-extensions", "--disable-background-networking", "--disable-sync",
         "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe"]


class Browser:
    def __init__(self, program, profile_directory):
        self.to_read, self.to_write = os.pipe()
        self.from_read, self.from_write = os.pipe()
        # The shell gives the ends the numbers that Chromium expects.
        command = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", command, str(self.to_read), str(self.from_write), program, *FLAGS,
             "--user-data-dir=" + profile_directory, "about:blank"],
            pass_fds=(self.to_read, self.from_write), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(self.to_read)
        os.close(self.from_write)
        self.number = 0
        self.buffer = b""
        self.session = None
        self.events = []  # of the page, as (method, parameters)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.from_read], [], [], left)[0]:
                raise TimeoutError("no answer from the browser")
            data = os.read(self.from_read, 1 << 20)
            if not data:
                raise ConnectionError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, seconds=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append((answer["method"], answer.get("params", {})))

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        until = time.monotonic() + 60
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            answer = self.receive(until)
            if "method" in answer:
                self.events.append((answer["method"], answer.get("params", {})))

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "?"))
        return answer["result"].get("value")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click(self, selector):
        """A real click in the middle of an element."""
        x, y = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
                        "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
                        "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def window(self, width, height, theme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What a developer would see in the console, and what was fetched besides the page."""
        found = []
        for method, parameters in self.events:
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled":
                found.append("console: " + str(parameters["args"][:1]))
            elif method == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append("fetched " + url)
        return found

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", seconds=10)
        except (RuntimeError, OSError, TimeoutError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
