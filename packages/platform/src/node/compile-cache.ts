/** What Node has compiled of a program, kept for its next start where NODE_COMPILE_CACHE says. */
import { flushCompileCache } from 'node:module';

/**
 * Writes it down now. Node does so by itself only when a program ends well: of one that is killed,
 * or crashes again and again, nothing would be kept. Does nothing where no cache is asked for.
 */
export function keepCompiled(): void {
  flushCompileCache();
}
