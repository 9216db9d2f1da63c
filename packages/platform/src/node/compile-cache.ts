/**
 * Node's compiled code of a program, kept for its next start in the folder of NODE_COMPILE_CACHE.
 */
import { flushCompileCache } from 'node:module';

/**
 * Writes the cache now. Node writes it by itself only when a program ends normally, so a program
 * that is killed, or crashes again and again, would never have one. Does nothing where no cache is
 * configured.
 */
export function keepCompiled(): void {
  flushCompileCache();
}
