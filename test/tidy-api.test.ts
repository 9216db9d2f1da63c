/** The API's definitions: fresh code, and no break for those who use it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  buf,
  chooseBase,
  declaredBreak,
  findBreaks,
  findImageBreaks,
  findStale,
  inScratch,
  isImageOf,
  readHistory,
  released,
} from './tidy/api.ts';
import { newestVersion } from './tidy/release.ts';
import { root } from './tidy/sources.ts';

const proto = join(root, 'proto');

/** Copies the definitions, changes one of the third-party files, and uses the copy. */
function withChange<T>(from: string, to: string, use: (folder: string) => T): T {
  return inScratch((folder) => {
    cpSync(proto, folder, { recursive: true });
    const path = join(folder, 'third_party/grpc/health/v1/health.proto');
    const text = readFileSync(path, 'utf8');
    expect(text).toContain(from);
    writeFileSync(path, text.replace(from, to));
    return use(folder);
  });
}

test('the committed code is what the definitions generate', () => {
  expect(findStale(proto)).toEqual([]);
});

test('the check notices generated code that differs from the definitions', () => {
  const stale = withChange('string service = 1', 'string other = 1', findStale);
  expect(stale).toEqual(['grpc/health/v1/health_pb.ts']);
});

test('no definition breaks a client of the last release', () => {
  // For a deliberate break: npm run gen -- --released, and a commit message with API-BREAK: why.
  expect(findBreaks(proto, released)).toEqual([]);
});

test('the check notices a field that changed its type', () => {
  const breaks = withChange('string service = 1', 'bytes service = 1', (folder) =>
    findBreaks(folder, released),
  );
  expect(breaks.join('\n')).toContain('changed type from "string" to "bytes"');
});

test('the check accepts an added field', () => {
  const added = 'string service = 1; string extra = 2';
  const breaks = withChange('string service = 1', added, (folder) => findBreaks(folder, released));
  expect(breaks).toEqual([]);
});

test('the released descriptors are replaced compatibly, or a reason is given', (context) => {
  const base = chooseBase(readHistory());
  if (base.kind === 'none') return context.skip(base.reason);
  if (declaredBreak(base.commit) !== undefined) return;
  expect(findImageBreaks(base.commit)).toEqual([]);
});

test('the released descriptors equal the definitions once the changelog dates a version', () => {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const isRelease = newestVersion(changelog).date !== undefined;
  expect(isRelease && !isImageOf(released, proto)).toBe(false);
});

test('the image of these definitions is told apart from that of others', () => {
  inScratch((folder) => {
    const image = join(folder, 'image.binpb');
    expect(buf(proto, 'build', '--exclude-source-info', '-o', image)).toEqual([]);
    expect(isImageOf(image, proto)).toBe(true);
    const other = 'string service = 1; string extra = 2';
    expect(withChange('string service = 1', other, (to) => isImageOf(image, to))).toBe(false);
  });
});

test('the comparison is with the last release, else the branch point, else the parent', () => {
  const all = { head: 'h', release: 'r', mergeBase: 'm', parent: 'p' };
  expect(chooseBase(all)).toEqual({ kind: 'commit', commit: 'r' });
  expect(chooseBase({ ...all, release: undefined })).toEqual({ kind: 'commit', commit: 'm' });
  const onMain = { ...all, release: undefined, mergeBase: 'h' };
  expect(chooseBase(onMain)).toEqual({ kind: 'commit', commit: 'p' });
  expect(chooseBase({ ...onMain, parent: undefined })).toMatchObject({ kind: 'none' });
});
