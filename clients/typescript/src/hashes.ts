// The hashes of the format, and bytes as text. The hashing itself is the platform's: Node has both functions; a browser
// gives them as an argument, for example from a library.

/** SHA-256 and SHAKE-256 (with an output of so many bytes), as plain functions. */
export interface Hashes {
  sha256(data: Uint8Array): Uint8Array;
  shake256(data: Uint8Array, length: number): Uint8Array;
}

interface NodeCrypto {
  createHash(name: string, options?: { outputLength: number }): { update(data: Uint8Array): { digest(): Uint8Array } };
}
type Platform = { process?: { getBuiltinModule?(name: string): unknown } };

/** The hashes of Node, or undefined where there is no Node. */
export function nodeHashes(): Hashes | undefined {
  const crypto = (globalThis as Platform).process?.getBuiltinModule?.("node:crypto") as NodeCrypto | undefined;
  if (crypto === undefined) return undefined;
  return {
    sha256: (data) => crypto.createHash("sha256").update(data).digest(),
    shake256: (data, length) => crypto.createHash("shake256", { outputLength: length }).update(data).digest(),
  };
}

export function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => HEX[byte]).join("");

/** The bytes of a text that is known to be hex. */
export const fromHex = (text: string): Uint8Array =>
  Uint8Array.from({ length: text.length / 2 }, (_, at) => Number.parseInt(text.slice(2 * at, 2 * at + 2), 16));

/** The bytes of base64 in its one canonical form, or undefined. */
export function fromBase64(text: string): Uint8Array | undefined {
  try {
    const bytes = atob(text);
    return btoa(bytes) === text ? Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)) : undefined;
  } catch {
    return undefined;
  }
}
