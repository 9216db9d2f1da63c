/** Images as pools name them and as hosts are told: OCI references by tag or by digest. Pure. */
import { formatReference, parseReference } from '@rackwright/oci';

/** What is wrong with an image that a pool names; undefined when it is fine. */
export function imageProblem(text: string): string | undefined {
  if (text === '') return 'is missing; name an OCI image by tag or digest';
  const read = parseReference(text);
  if (read.kind === 'bad') return read.problem;
  const { tag, digest } = read.reference;
  if (tag !== undefined || digest !== undefined) return undefined;
  return 'names neither a tag nor a digest; add ":TAG" or "@sha256:…"';
}

/** What is wrong with an image that a host is pinned to. */
export function pinProblem(text: string): string | undefined {
  const problem = imageProblem(text);
  if (problem !== undefined) return problem;
  return digestOf(text) === '' ? 'must name a digest, "@sha256:…", for a pin stays' : undefined;
}

/** "sha256:…" of an image by digest; empty for any other text. */
export function digestOf(image: string): string {
  return /@(sha256:[0-9a-f]{64})$/.exec(image)?.[1] ?? '';
}

/** The image by digest alone, as hosts are told; undefined when the text is no reference. */
export function imageByDigest(text: string, digest: string): string | undefined {
  const read = parseReference(text);
  const bytes = parseReference(`localhost:1/x@${digest}`);
  if (read.kind === 'bad' || bytes.kind === 'bad') return undefined;
  return formatReference({
    ...read.reference,
    tag: undefined,
    digest: bytes.reference.digest,
  });
}
