// Builds the page into the package, with digests by which a test sees that it fits these sources.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = "../app/src/topicloom_app/ui/static";
await build({
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: out,
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' },
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(`src/${name}`, `${out}/${name}`);
copyFileSync("node_modules/preact/LICENSE", `${out}/preact-LICENSE.txt`);

const digest = (paths) => {
  const hash = createHash("sha256");
  for (const path of paths) hash.update(readFileSync(path));
  return hash.digest("hex");
};
const list = (folder) => readdirSync(folder).filter((name) => name !== "digests.json").sort()
  .map((name) => `${folder}/${name}`);
const sources = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...list("src")];
const digests = { sources: digest(sources), built: digest(list(out)) };
writeFileSync(`${out}/digests.json`, `${JSON.stringify(digests, null, 2)}\n`);
