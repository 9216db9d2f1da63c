/**
 * References to images, as "registry.example.org:5000/tools/check@sha256:…".
 *
 * 1. The registry is always named: a first part without a dot or a port, which is no "localhost",
 *    is refused; there is no default registry.
 * 2. A reference may have a tag, and it means nothing here: the digest names what is run.
 */
import { type Digest, parseDigest } from './digest.ts';

export interface ImageReference {
  /** "host" or "host:port", lower-case. */
  readonly registry: string;
  /** "tools/check" */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: Digest | undefined;
}

export type ReferenceResult =
  | { readonly kind: 'ok'; readonly reference: ImageReference }
  | { readonly kind: 'bad'; readonly problem: string };

const referenceCharactersMax = 512;
/** distribution-spec, "Pulling manifests": 255 with the registry's name. */
const nameCharactersMax = 255;
const hostForm =
  /^(?=.{1,253}(?::|$))(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;
const partForm = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const tagForm = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/** Reads a reference; `problem` says what is wrong with it and what would be right. */
export function parseReference(text: string): ReferenceResult {
  if (text.length > referenceCharactersMax) {
    return bad(`has ${text.length} characters; at most ${referenceCharactersMax} are taken`);
  }
  const [name = '', digestText, ...more] = text.split('@');
  if (more.length > 0) return bad('has more than one "@"');
  const digest = digestText === undefined ? undefined : parseDigest(digestText);
  if (digestText !== undefined && digest === undefined) {
    return bad('has a digest that is not "sha256:" and 64 lower-case hex digits');
  }
  const slash = name.indexOf('/');
  const registry = name.slice(0, Math.max(slash, 0));
  if (slash < 1 || !isRegistry(registry)) {
    return bad('must begin with its registry, as "registry.example.org/" or "localhost:5000/"');
  }
  const [repository = '', tag, ...tags] = name.slice(slash + 1).split(':');
  if (!isRepository(repository) || name.length > nameCharactersMax) {
    return bad(`has the repository "${repository}"; it must be lower-case parts joined by "/"`);
  }
  if (tags.length > 0 || (tag !== undefined && !tagForm.test(tag))) {
    return bad('has a tag that is not 1 to 128 letters, digits, "_", "." and "-"');
  }
  return { kind: 'ok', reference: { registry, repository, tag, digest } };
}

/** "host" or "host:port" with a dot, a port, or the name localhost. */
export function isRegistry(text: string): boolean {
  const found = hostForm.exec(text);
  if (found === null) return false;
  const [, port] = found;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false;
  return port !== undefined || text === 'localhost' || /[.[]/.test(text);
}

/** "tools/check" */
export function isRepository(text: string): boolean {
  return text.length <= nameCharactersMax && text.split('/').every((part) => partForm.test(part));
}

function bad(problem: string): ReferenceResult {
  return { kind: 'bad', problem };
}
