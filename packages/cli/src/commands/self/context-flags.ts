/** Flags of the commands that only read or write this command's own files. */
import { connectionFlags } from '../../flags.ts';

const { config, context } = connectionFlags;

export const contextFlags = { config, context } as const;

/** Values of `contextFlags`. */
export interface ContextFlags {
  readonly config?: string;
  readonly context?: string;
}
