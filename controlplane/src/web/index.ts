/** The HTTP pages of the operators' port besides calls: probes, sign-in, the console. */
import type { Respond } from '@rackwright/messages';
import { type AuthPages, authPage } from './auth-pages.ts';
import { consolePages } from './console-files.ts';
import { type ProbePages, probePage } from './probe-pages.ts';

export interface PagesOptions extends AuthPages, ProbePages {
  /** The console's files, by their paths; empty: it is not installed. */
  readonly consoleFiles: ReadonlyMap<string, Uint8Array>;
}

/** Serves each of them; any other path is not found. */
export function createPages(options: PagesOptions): Respond {
  const console = consolePages(options.consoleFiles);
  return async (request) =>
    probePage(request, options) ?? (await authPage(request, options)) ?? (await console(request));
}
