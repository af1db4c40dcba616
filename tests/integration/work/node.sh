# SPDX-License-Identifier: Apache-2.0
# Node's event loop, threads, children and servers; npm with a package from a local tarball, here and for everybody
mkdir app
cd app
node -e 'console.log([1, 2, 3].map(x => x * 2).join())'
node -e 'new (require("worker_threads").Worker)("console.log(\"worker\")", {eval: true})'
node -e 'require("child_process").execFile("echo", ["child"], (e, out) => process.stdout.write(out))'
node - <<'END'
const http = require("http");
const server = http.createServer((request, response) => response.end("served\n")).listen(0, "127.0.0.1", () =>
	http.get({port: server.address().port}, response => {
		response.pipe(process.stdout);
		response.on("end", () => server.close());
	}));
END
npm init -y >/dev/null
npm install --offline --no-audit --no-fund /packages/greeter-1.0.0.tgz
node -e 'console.log(require("greeter")("module"))'
npx --offline greet
cat node_modules/greeter/built
npm install --offline --no-audit --no-fund -g /packages/greeter-1.0.0.tgz
greet
