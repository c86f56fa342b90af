// Checks a bundle from the command line:
//
//     node cli.ts BUNDLE [--at SEQ] [--anchor '{"session": id, "seq": n, "hash": hex}'] [--ring FILE --key FILE]
//
// `--ring` and `--key` are the files with the key ring and the master key of an encrypted bundle.
//
// Prints one JSON document; exit code 1 when something does not hold. Instead of arguments, `-` takes many command lines
// from standard input, each a JSON list in a line, and answers each with one document in a line.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import type { BundleOptions } from "./bundle.ts";
import { readBundle } from "./bundle.ts";
import { BrokenBundleError, parse } from "./json.ts";

function readArguments(words: string[]): [string, BundleOptions] {
  const options: BundleOptions = {};
  let path: string | undefined;
  const files: { [option: string]: string } = {};
  for (let place = 0; place < words.length; place += 1) {
    const word = words[place] as string;
    if (["--at", "--anchor", "--ring", "--key"].includes(word)) {
      place += 1;
      const value = words[place];
      if (value === undefined) throw new BrokenBundleError(`${word} needs a value`);
      if (word === "--ring" || word === "--key") files[word] = readText(value);
      else if (word === "--anchor") options.anchor = parse(value, "the anchor");
      else if (/^(0|[1-9][0-9]{0,14})$/.test(value)) options.at = Number(value);
      else throw new BrokenBundleError("--at needs a seq");
    } else if (path === undefined) {
      path = word;
    } else {
      throw new BrokenBundleError(`${word} is one argument too many`);
    }
  }
  if (path === undefined) {
    throw new BrokenBundleError("usage: BUNDLE [--at SEQ] [--anchor JSON] [--ring FILE --key FILE]");
  }
  const { "--ring": ring, "--key": master } = files;
  if ((ring === undefined) !== (master === undefined)) throw new BrokenBundleError("--ring and --key go together");
  if (ring !== undefined && master !== undefined) options.keys = { ring, master };
  return [path, options];
}

function readFile(path: string, what = "the bundle"): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new BrokenBundleError(`${what} cannot be read: ${(error as Error).message}`);
  }
}

const readText = (path: string): string => new TextDecoder().decode(readFile(path, "a key file"));

async function answer(words: string[]): Promise<{ ok: boolean; [field: string]: unknown }> {
  try {
    const [path, options] = readArguments(words);
    return { ...(await readBundle(readFile(path), options)), ok: true };
  } catch (error) {
    if (error instanceof BrokenBundleError) return { ok: false, error: error.message, seq: error.seq };
    return { ok: false, error: `the bundle is not as it should be: ${String(error)}`, seq: 0 };
  }
}

const given = process.argv.slice(2);
const isMany = given.length === 1 && given[0] === "-";

async function* commands(): AsyncGenerator<string[]> {
  if (!isMany) return yield given;
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line) as string[];
}

for await (const command of commands()) {
  const result = await answer(command);
  if (!result.ok) process.exitCode = 1;
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
