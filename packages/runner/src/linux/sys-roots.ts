/** The roots of the kernel's files; other places in tests. */
export interface SysRoots {
  readonly sys: string;
  readonly proc: string;
  /** Unset: /dev. */
  readonly dev?: string;
  /** Unset: /run. */
  readonly run?: string;
}

export const realRoots: SysRoots = { sys: '/sys', proc: '/proc' };
