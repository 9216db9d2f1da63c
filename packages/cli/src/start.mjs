#!/usr/bin/env node
/** Starts the command; plain JavaScript, so that a Node that reads no TypeScript can say so. */
try {
  await import('./main.ts');
} catch (cause) {
  if (cause.code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw cause;
  console.error(
    `This needs Node 24.18.1 or later, not ${process.versions.node}. ` +
      'npx rackwright takes the pinned one, node_modules/.bin/node.',
  );
  process.exitCode = 2;
}
