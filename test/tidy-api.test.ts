/** The API's definitions: fresh code, and no break for those who use it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  buf,
  chooseBase,
  declaredBreak,
  findBreaks,
  findStale,
  inScratch,
  readHistory,
} from './tidy/api.ts';
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

test('commits the code that the definitions generate', () => {
  expect(findStale(proto)).toEqual([]);
});

test('notices generated code that is not what the definitions generate', () => {
  const stale = withChange('string service = 1', 'string other = 1', findStale);
  expect(stale).toEqual(['grpc/health/v1/health_pb.ts']);
});

test('breaks no client that was built before', (context) => {
  const base = chooseBase(readHistory());
  if (base.kind === 'none') return context.skip(base.reason);
  const reason = declaredBreak(base.commit);
  if (reason !== undefined) return context.skip(`the API was broken deliberately: ${reason}`);
  expect(findBreaks(proto, base.commit)).toEqual([]);
});

test('notices a field that changed its type', () => {
  withChange('string service = 1', 'bytes service = 1', (folder) => {
    const complaints = buf(folder, 'breaking', '--against', proto);
    expect(complaints.join('\n')).toContain('changed type from "string" to "bytes"');
  });
});

test('compares with the last release, else the branch point, else the parent', () => {
  const all = { head: 'h', release: 'r', mergeBase: 'm', parent: 'p' };
  expect(chooseBase(all)).toEqual({ kind: 'commit', commit: 'r' });
  expect(chooseBase({ ...all, release: undefined })).toEqual({ kind: 'commit', commit: 'm' });
  const onMain = { ...all, release: undefined, mergeBase: 'h' };
  expect(chooseBase(onMain)).toEqual({ kind: 'commit', commit: 'p' });
  expect(chooseBase({ ...onMain, parent: undefined })).toMatchObject({ kind: 'none' });
});
