/** Images as pools name them and as hosts are told. Pure. */
import { atDigest, digestOfImage, imageNameProblem } from '../../images/index.ts';

/** What is wrong with an image that a pool names; undefined when it is fine. */
export function imageProblem(text: string): string | undefined {
  return imageNameProblem(text);
}

/** What is wrong with an image that a host is pinned to. */
export function pinProblem(text: string): string | undefined {
  const problem = imageProblem(text);
  if (problem !== undefined) return problem;
  return digestOf(text) === '' ? 'must name a digest, "@sha256:…", for a pin stays' : undefined;
}

/** "sha256:…" of an image by digest; empty for any other text. */
export function digestOf(image: string): string {
  return digestOfImage(image);
}

/** The image by digest alone, as hosts are told; undefined when the text is no reference. */
export function imageByDigest(text: string, digest: string): string | undefined {
  return atDigest(text, digest);
}
