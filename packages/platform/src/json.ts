/**
 * The value of a JSON text (RFC 8259); undefined for any other text. No JSON text has the value
 * undefined. The message of the parser is left out: it repeats the text, which may hold a secret.
 */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Undefined stands for the error.
    return undefined;
  }
}
