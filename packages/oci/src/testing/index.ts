/** For tests of code that pulls and unpacks images: images in memory, and a web without sockets. */
export {
  type ImageOptions,
  type WrittenEntry,
  type WrittenImage,
  writeImage,
  writeIndex,
  writeTar,
} from './tar-writer.ts';
export { type Page, pagesWeb, rangePage } from './web.ts';
