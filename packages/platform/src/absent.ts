/** Whether a call of the file system failed because nothing has that path (ENOENT, POSIX). */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
