/**
 * Names of images of hosts: an OCI reference by tag or digest, or a file by its URL and SHA-256.
 * Pure.
 *
 * Invariant: hosts get an image by its content, never by a tag.
 */
import { parseReference } from '@rackwright/oci';

export type ImageName =
  | {
      readonly kind: 'oci';
      /** "host" or "host:port" */
      readonly registry: string;
      readonly repository: string;
      readonly tag: string | undefined;
      /** "sha256:HEX"; undefined: it has to be resolved. */
      readonly digest: string | undefined;
    }
  | {
      readonly kind: 'file';
      /** "host" or "host:port", as the fleet names registries. */
      readonly registry: string;
      readonly plainHttp: boolean;
      readonly digest: string;
    };

export type ReadImageName =
  | { readonly kind: 'ok'; readonly name: ImageName }
  | { readonly kind: 'bad'; readonly problem: string };

const urlCharactersMax = 2_048;
const fileForm = /^sha256=([0-9a-f]{64})$/;

/** Parses the name; `problem` says what is wrong and what would be right. */
export function readImageName(text: string): ReadImageName {
  if (/^https?:\/\//i.test(text)) return readFileName(text);
  const read = parseReference(text);
  if (read.kind === 'bad') return read;
  const { registry, repository, tag, digest } = read.reference;
  if (tag === undefined && digest === undefined) {
    return bad('names neither a tag nor a digest; add ":TAG" or "@sha256:…"');
  }
  return { kind: 'ok', name: { kind: 'oci', registry, repository, tag, digest } };
}

function readFileName(text: string): ReadImageName {
  if (text.length > urlCharactersMax) {
    return bad(`has ${text.length} characters; at most ${urlCharactersMax} are taken`);
  }
  const url = URL.parse(text);
  if (url === null || /[\s\p{Cc}]/u.test(text)) return bad('is no URL');
  if (url.username !== '' || url.password !== '') {
    return bad('holds a user or a password; let the fleet name a credential for its host');
  }
  const [, hex] = fileForm.exec(url.hash.slice(1)) ?? [];
  if (hex === undefined) {
    return bad('must end with the SHA-256 of its file, as in "https://HOST/PATH#sha256=HEX"');
  }
  const plainHttp = url.protocol === 'http:';
  const digest = `sha256:${hex}`;
  return { kind: 'ok', name: { kind: 'file', registry: url.host, plainHttp, digest } };
}

/** What is wrong with an image's name; undefined when it is valid. */
export function imageNameProblem(text: string): string | undefined {
  if (text === '') {
    return (
      'is missing; name an OCI image by tag or digest, or a file as ' +
      '"https://HOST/PATH#sha256=HEX"'
    );
  }
  const read = readImageName(text);
  return read.kind === 'bad' ? read.problem : undefined;
}

/** "sha256:HEX" of a name by content; empty for another name. */
export function digestOfImage(text: string): string {
  const read = readImageName(text);
  return read.kind === 'ok' ? (read.name.digest ?? '') : '';
}

/** The OCI image by its digest alone. */
export function byDigest(
  { registry, repository }: Extract<ImageName, { kind: 'oci' }>,
  digest: string,
): string {
  return `${registry}/${repository}@${digest}`;
}

/**
 * The image by its digest alone, in the form for hosts; undefined when the text is no image name.
 */
export function atDigest(text: string, digest: string): string | undefined {
  const read = readImageName(text);
  if (read.kind === 'bad' || !/^sha256:[0-9a-f]{64}$/.test(digest)) return undefined;
  const { name } = read;
  if (name.kind === 'file') return name.digest === digest ? text : undefined;
  return byDigest(name, digest);
}

/** In the form for hosts: without a tag next to a digest. Undefined: it has no digest. */
export function withoutTag(text: string): string | undefined {
  const read = readImageName(text);
  if (read.kind === 'bad' || read.name.digest === undefined) return undefined;
  return atDigest(text, read.name.digest);
}

function bad(problem: string): ReadImageName {
  return { kind: 'bad', problem };
}
