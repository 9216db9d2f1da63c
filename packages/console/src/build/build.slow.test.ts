/** The built files are small, the same each time, and load nothing from elsewhere. */
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { type BuiltConsole, buildConsole } from './build.ts';

/** The size of all files together, compressed. */
const compressedBytesMax = 250 * 1024;

let built: BuiltConsole;
let texts: ReadonlyMap<string, string>;

beforeAll(async () => {
  built = await buildConsole();
  texts = new Map(
    [...built.files].map(([path, bytes]) => [path, Buffer.from(bytes).toString('utf8')]),
  );
});

test('all files together take less than 250 KiB compressed', () => {
  const sizes = [...built.files.values()].map((bytes) => gzipSync(bytes, { level: 9 }).byteLength);
  const sum = sizes.reduce((all, each) => all + each, 0);
  expect(sum).toBeGreaterThan(50 * 1024);
  expect(sum).toBeLessThan(compressedBytesMax);
});

test('the same sources give the same bytes', async () => {
  const again = await buildConsole();
  expect([...again.files.keys()]).toEqual([...built.files.keys()]);
  for (const [path, bytes] of again.files) {
    expect(Buffer.compare(bytes, built.files.get(path) ?? Buffer.of()), path).toBe(0);
  }
  for (const text of texts.values()) expect(text).not.toContain(import.meta.dirname);
});

test('the page holds no script and no style, and names files of this server alone', () => {
  const page = texts.get('index.html') ?? '';
  expect(page).toContain('<script type="module"');
  expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  const named = [...page.matchAll(/\s(?:src|href)="([^"]*)"/g)].map((found) => found[1]);
  expect(named.length).toBeGreaterThan(2);
  for (const path of named) expect(texts.has(path?.replace(/^\//, '') ?? ''), path).toBe(true);
});

test('no file loads anything from elsewhere, or makes code of a text', () => {
  const styles = [...texts].filter(([path]) => path.endsWith('.css')).map(([, text]) => text);
  expect(styles.join('')).not.toMatch(/url\(|@import/);
  const scripts = [...texts].filter(([path]) => path.endsWith('.js')).map(([, text]) => text);
  expect(scripts.join('')).not.toMatch(/\beval\(|new Function\(|innerHTML\s*=\s*[^=]*location/);
});

test('the build tells whose code is in it', () => {
  const names = built.packageFolders.map((folder) => folder.replace(/^.*\/node_modules\//, ''));
  expect(names).toEqual(
    expect.arrayContaining(['@bufbuild/protobuf', '@connectrpc/connect-web', 'preact']),
  );
});
