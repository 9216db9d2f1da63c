/** Reading an answer's body whole, when it is small. */
import { type WebAnswer, WebBroken } from '@rackwright/platform';
import { OciError } from '../failure.ts';

/** The body, at most `bytesMax` of it; `name` names it in errors. */
export async function readBody(
  answer: WebAnswer,
  bytesMax: number,
  name: string,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of answer.body) {
      bytes += part.length;
      if (bytes > bytesMax) {
        throw new OciError('tooLarge', `the ${name} is longer than ${bytesMax} bytes`);
      }
      parts.push(part);
    }
  } catch (error) {
    if (!(error instanceof WebBroken)) throw error;
    throw new OciError('unreachable', error.message, { cause: error });
  } finally {
    answer.close();
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const refusalBytesMax = 16 * 1024;
const textCharactersMax = 200;

/**
 * A registry's words with a refusal (distribution-spec, "Error Codes"), in brackets; empty when
 * there are none that can be shown.
 */
export async function refusalText(answer: WebAnswer): Promise<string> {
  let errors: unknown;
  try {
    const bytes = await readBody(answer, refusalBytesMax, 'refusal');
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    errors = typeof value === 'object' && value !== null && 'errors' in value ? value.errors : [];
  } catch {
    // The caller reports the status of the refusal in any case.
    return '';
  }
  const texts = (Array.isArray(errors) ? errors : []).flatMap((each: unknown) => {
    if (typeof each !== 'object' || each === null) return [];
    const { code, message } = each as { code?: unknown; message?: unknown };
    return [[code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')];
  });
  const shown = texts
    .filter((each) => each !== '')
    .join('; ')
    .replace(/\p{C}/gu, ' ');
  return shown === '' ? '' : ` (${shown.slice(0, textCharactersMax)})`;
}
