/** Reading the arguments of a step: text on the wire, checked before anything is done. Pure. */
import { invalid, parsedJson, type Read, valid } from '@rackwright/platform';

/** Variables of one program. */
export const environmentVariablesMax = 100;
/** The size of all values together; the kernel allows far more. */
export const environmentBytesMax = 64 * 1024;
/** Names of our own, which no other program sets. */
const reservedPrefix = 'RACKWRIGHT_';

/** The names that `given` has and `known` has not, as a problem. */
export function unknownArguments(
  given: Readonly<Record<string, string>>,
  known: readonly string[],
): string | undefined {
  const unknown = Object.keys(given).filter((name) => !known.includes(name));
  if (unknown.length === 0) return undefined;
  return `unknown arguments ${unknown.join(', ')}; known are ${known.join(', ')}`;
}

/** The argument `environment`: a JSON object of texts, or empty. */
export function readEnvironment(text: string | undefined): Read<Record<string, string>> {
  if (text === undefined || text === '') return valid({});
  const parsed = parsedJson(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return invalid('environment: must be a JSON object whose values are texts');
  }
  const variables: Record<string, string> = {};
  let bytes = 0;
  for (const [name, content] of Object.entries(parsed)) {
    const problem = problemOfVariable(name, content);
    if (problem !== undefined) return invalid(`environment: ${problem}`);
    variables[name] = String(content);
    bytes += Buffer.byteLength(variables[name]);
  }
  if (Object.keys(variables).length > environmentVariablesMax) {
    return invalid(`environment: at most ${environmentVariablesMax} variables`);
  }
  if (bytes > environmentBytesMax)
    return invalid(`environment: at most ${environmentBytesMax} bytes`);
  return valid(variables);
}

/**
 * The variables that the argument `secretEnvironment` names, with the secrets that arrived for
 * them; a program never starts without one of them.
 */
export function readSecretEnvironment(
  text: string | undefined,
  secrets: Readonly<Record<string, string>>,
): Read<Record<string, string>> {
  if (text === undefined || text === '') return valid({});
  const parsed = parsedJson(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return invalid('secretEnvironment: must be a JSON object');
  }
  const variables: Record<string, string> = {};
  for (const name of Object.keys(parsed)) {
    const secret = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
    if (secret === undefined) return invalid(`the secret for ${name} did not come; run it again`);
    const problem = problemOfVariable(name, secret);
    if (problem !== undefined) return invalid(`secretEnvironment: ${problem}`);
    variables[name] = secret;
  }
  return valid(variables);
}

function problemOfVariable(name: string, content: unknown): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) return `"${name}" is no name of a variable`;
  if (name.startsWith(reservedPrefix)) return `names with ${reservedPrefix} are our own`;
  if (typeof content !== 'string') return `the value of ${name} must be a text`;
  return content.includes('\0') ? `the value of ${name} holds a zero byte` : undefined;
}
