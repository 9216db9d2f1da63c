/** A value that names a credential: `{credential: hooks, part: password, prefix: "Bearer "}`. */
import { type CredentialName, isChosenId } from '@rackwright/messages';
import { choice, type Field, fieldsOf, type ParseContext, plainText, upTo } from './fields.ts';

/** The value in a step's arguments in place of the secret, as JSON under the variable's name. */
export interface SecretValue {
  /** "credentials/CREDENTIAL" */
  readonly credential: CredentialName;
  readonly part: 'password' | 'username';
  /** Stands before the secret. */
  readonly prefix?: string;
}

const parts = ['password', 'username'] as const;
const prefixCharactersMax = 64;

/** The value of a map; undefined when it is invalid, which is reported as a problem. */
export function secretValue(
  reading: ParseContext,
  field: Field,
  takesPrefix: boolean,
): SecretValue | undefined {
  const known = ['credential', 'part', ...(takesPrefix ? ['prefix'] : [])];
  const fields = fieldsOf(reading, field, known);
  const named = fields.get('credential');
  if (named === undefined) {
    reading.problems.add(field.node.at, field.path, 'names no credential; it is a text otherwise');
    return undefined;
  }
  const id = plainText(reading, named, (text) => {
    return isChosenId(text) ? undefined : 'must be the id of a credential, as "hooks"';
  });
  const partField = fields.get('part');
  const part = partField === undefined ? 'password' : choice(reading, partField, parts);
  const prefixField = fields.get('prefix');
  const prefix = prefixField && plainText(reading, prefixField, upTo(prefixCharactersMax));
  if (id === undefined || part === undefined) return undefined;
  const credential = `credentials/${id}`;
  return { credential, part, ...(prefix === undefined ? {} : { prefix }) };
}

/** Variables that decide how programs start: none of them is a secret. */
const startingNames = /^(PATH|LC_ALL|LD_.*|ENV|BASH_ENV|IFS|PS4|SHELLOPTS|NODE_OPTIONS)$/;

/** Variables that shells give values of their own, so that a program would not get the secret. */
const shellNames =
  /^(_|PWD|OLDPWD|SHLVL|PPID|OPT(IND|ARG|ERR)|PS[12]|LINENO|S?RANDOM|SECONDS|EPOCH[A-Z]*|E?UID|GROUPS|FUNCNAME|DIRSTACK|PIPESTATUS|HISTCMD|(HOST|MACH|OS)TYPE|COMP_.*|BASH.*)$/;

/** Why a secret cannot have this name. */
export function secretNameProblem(name: string): string | undefined {
  if (startingNames.test(name)) return `${name} decides how programs start, and is no secret`;
  if (shellNames.test(name)) return `${name} is what shells set by themselves, and is no secret`;
  return undefined;
}
