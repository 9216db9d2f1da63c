/** Debian packages of Rackwright, written without Debian's tools. */
export { type BuildRequest, type Built, buildPackages } from './build.ts';
export { type Bundle, type BundledPart, bundle } from './bundle.ts';
export { programs } from './contents.ts';
