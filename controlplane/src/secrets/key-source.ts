/**
 * Sources of secrets keys: a file, a systemd credential, or a program. Each is read at the start
 * and again whenever a person requests another key.
 *
 * Invariants:
 * 1. A file that others can read, or that another user could write, is not used: the secret may be
 *    known to them.
 * 2. Every failure has a message of its own, which names the source and what would be right. No
 *    message repeats the read text, the output of a key program, or its arguments.
 * 3. A program gets no shell, bounded time and bounded output.
 */
import { type Disk, type Exec, errorText } from '@rackwright/platform';
import { keyTextBytesMax, parseKeys } from './key-text.ts';
import { SecretError } from './secrets.ts';

/** The configured source. */
export type KeySourceConfig =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'systemdCredential'; readonly name: string }
  | { readonly kind: 'command'; readonly command: readonly string[] };

/** A source of keys; the first one is to seal. */
export interface KeySource {
  /** For people: "the file /etc/…". */
  readonly described: string;
  /** Throws `SecretError`. */
  read(): Promise<readonly Uint8Array[]>;
}

export interface KeySourceParts {
  readonly disk: Pick<Disk, 'read' | 'stat'>;
  /** Missing: no program can be run. */
  readonly exec?: Exec;
  /** $CREDENTIALS_DIRECTORY; undefined when systemd has set none. */
  readonly credentialsFolder?: string;
}

/** The longest run of a program. */
const commandTimeoutMs = 30_000;
/** Any of these bits gives others access. */
const othersBits = 0o077;
/** systemd gives its service access by an access list, which shows as rights of the group. */
const credentialOthersBits = 0o007;

/** The source that the configuration names. */
export function openKeySource(config: KeySourceConfig, parts: KeySourceParts): KeySource {
  switch (config.kind) {
    case 'file':
      return ownFileSource(parts.disk, config.path);
    case 'systemdCredential':
      return credentialSource(parts, config.name);
    case 'command':
      return commandSource(parts.exec, config.command);
  }
}

/** A configuration for the log: the arguments of a key program may be secret. */
export function shownConfig<T extends { readonly secrets?: { readonly key: KeySourceConfig } }>(
  config: T,
): T {
  const key = config.secrets?.key;
  if (key?.kind !== 'command' || key.command.length < 2) return config;
  const [file = '', ...args] = key.command;
  const command = [file, `(arguments: ${args.length}, not shown)`];
  return { ...config, secrets: { key: { ...key, command } } };
}

/** A file of keys that only its owner may read. */
export function ownerOnlyFile(disk: KeySourceParts['disk'], path: string): KeySource {
  return fileSource(disk, path, othersBits);
}

/** A file that the configuration names: no other user has put it there. */
function ownFileSource(disk: KeySourceParts['disk'], path: string): KeySource {
  const source = fileSource(disk, path, othersBits);
  return {
    ...source,
    read: async () => {
      if ((await reading(path, disk.stat(path)))?.isOurs === false) {
        throw new SecretError(
          `the secrets key file ${path} belongs to another user, to whom the key may be known. ` +
            `If it is not, run: ${ownership(path)}`,
        );
      }
      return source.read();
    },
  };
}

/** The required owner of the file, for people. */
function ownership(path: string): string {
  return `chown USER ${path}, USER being the one that this runs as (the package’s is rackwright)`;
}

function fileSource(disk: KeySourceParts['disk'], path: string, forbidden: number): KeySource {
  const described = `the file ${path}`;
  return {
    described,
    read: async () => {
      const found = await reading(path, disk.stat(path));
      if (found === undefined) {
        throw new SecretError(
          `the secrets key file ${path} is missing. Restore it from its backup; for a new ` +
            `control plane make it by: (umask 077; openssl rand -base64 32 > ${path}); then ` +
            ownership(path),
        );
      }
      if ((found.mode & forbidden) !== 0) {
        const mode = (found.mode & 0o777).toString(8);
        throw new SecretError(
          `the secrets key file ${path} is open to others (mode ${mode}), so the key may be ` +
            `known to them. If it is not, run: chmod 600 ${path}`,
        );
      }
      if (found.sizeBytes > keyTextBytesMax) {
        throw new SecretError(`${path} has more than ${keyTextBytesMax} bytes: it holds no keys`);
      }
      const bytes = (await reading(path, disk.read(path))) ?? new Uint8Array();
      const keys = parseKeys(new TextDecoder().decode(bytes), path);
      bytes.fill(0);
      return keys;
    },
  };
}

async function reading<T>(path: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    const text = errorText(cause);
    const isRefused = cause instanceof Error && 'code' in cause && cause.code === 'EACCES';
    const next = isRefused ? `. It has to be readable by its owner only: ${ownership(path)}` : '';
    const message = `the secrets key file ${path} cannot be read: ${text}${next}`;
    throw new SecretError(message, { cause });
  }
}

function credentialSource({ disk, credentialsFolder }: KeySourceParts, name: string): KeySource {
  const described = `the systemd credential ${name}`;
  return {
    described,
    read: async () => {
      if (credentialsFolder === undefined) {
        throw new SecretError(
          `the secrets key is to come from ${described}, but systemd has set no ` +
            `CREDENTIALS_DIRECTORY: start this as a unit with LoadCredential=${name}:PATH`,
        );
      }
      const path = `${credentialsFolder}/${name}`;
      if ((await reading(path, disk.stat(path))) === undefined) {
        throw new SecretError(
          `${described} is missing: the unit needs LoadCredential=${name}:PATH or ` +
            `LoadCredentialEncrypted=${name}:PATH`,
        );
      }
      return fileSource(disk, path, credentialOthersBits).read();
    },
  };
}

function commandSource(exec: Exec | undefined, command: readonly string[]): KeySource {
  const [file = '', ...args] = command;
  const described = `the program ${file}`;
  const failed = (text: string) => new SecretError(`${described} gave no secrets key: ${text}`);
  return {
    described,
    read: async () => {
      if (exec === undefined) throw failed('this control plane starts no programs');
      const limits = { timeoutMs: commandTimeoutMs, outputBytesMax: keyTextBytesMax };
      const result = await exec.run({ file, args, ...limits });
      switch (result.kind) {
        case 'notStarted':
          throw failed(`it could not be started: ${result.message}`);
        case 'timedOut':
          throw failed(`it took longer than ${commandTimeoutMs / 1_000} s`);
        case 'exited':
          if (result.code !== 0) {
            // Its output may contain its own credentials: only the person who runs it may see that.
            throw failed(`it ended with code ${result.code}. Run it by hand to see why`);
          }
          return parseKeys(result.stdout, `the output of ${file}`);
      }
    },
  };
}
