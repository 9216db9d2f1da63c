/** Images in the forms for pools and for hosts. Pure. */
import { atDigest, digestOfImage, imageNameProblem } from '../../images/index.ts';

/** What is wrong with the image of a pool; undefined when it is valid. */
export function imageProblem(text: string): string | undefined {
  return imageNameProblem(text);
}

/** What is wrong with the image that a host is pinned to. */
export function pinProblem(text: string): string | undefined {
  const problem = imageProblem(text);
  if (problem !== undefined) return problem;
  return digestInImage(text) === ''
    ? 'must name a digest, "@sha256:…", for a pin stays'
    : undefined;
}

/** "sha256:…" of an image by digest; empty for any other text. */
export function digestInImage(image: string): string {
  return digestOfImage(image);
}

/** The image by digest alone, in the form for hosts; undefined when the text is no reference. */
export function imageByDigest(text: string, digest: string): string | undefined {
  return atDigest(text, digest);
}
