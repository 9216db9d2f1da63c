/**
 * Writes Debian packages (deb(5)): an "ar" archive of a version number, the control files and the
 * content.
 *
 * 1. The same package always gives the same bytes.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { type DebianTarEntry, tarArchive, withFolders } from './tar.ts';

/** A package, before it is packed. */
export interface DebianPackageContent {
  readonly name: string;
  readonly version: string;
  readonly architecture: 'amd64' | 'arm64' | 'all';
  /** Further fields of the control file, in their order. */
  readonly fields: Readonly<Record<string, string>>;
  /** First line, then the long form. */
  readonly description: readonly string[];
  readonly files: readonly DebianTarEntry[];
  /** Paths of configuration files, from "/". */
  readonly conffiles: readonly string[];
  /** Maintainer scripts by their name. */
  readonly scripts: Readonly<Partial<Record<ScriptName, string>>>;
  /** False: not worth the time, for example because the content is compressed already. */
  readonly compressible: boolean;
}

export type ScriptName = 'preinst' | 'postinst' | 'prerm' | 'postrm';

const arHeaderBytes = 60;
const kibibyte = 1024;
/**
 * gzip, although others are smaller: every Debian reads it, lintian takes it, and Node writes it
 * the same everywhere.
 */
const levels = { usual: 9, quick: 1 };

/** The bytes of a `.deb`. */
export function debianPackage(content: DebianPackageContent, mtimeSeconds: number): Uint8Array {
  const files = withFolders(content.files);
  const control = withFolders(controlEntries(content, files));
  const level = content.compressible ? levels.usual : levels.quick;
  return arArchive(
    [
      { name: 'debian-binary', bytes: Buffer.from('2.0\n') },
      {
        name: 'control.tar.gz',
        bytes: gzipSync(tar(control, mtimeSeconds), { level: levels.usual }),
      },
      { name: 'data.tar.gz', bytes: gzipSync(tar(files, mtimeSeconds), { level }) },
    ],
    mtimeSeconds,
  );
}

/** The file name that apt expects. */
export function fileNameOf(content: DebianPackageContent): string {
  return `${content.name}_${content.version}_${content.architecture}.deb`;
}

function tar(entries: readonly DebianTarEntry[], mtimeSeconds: number): Uint8Array {
  return tarArchive([{ kind: 'folder', path: '', mode: 0o755 }, ...entries], mtimeSeconds);
}

function controlEntries(
  content: DebianPackageContent,
  files: readonly DebianTarEntry[],
): DebianTarEntry[] {
  const sums = files.flatMap((entry) =>
    entry.kind === 'file' ? [`${md5(entry.bytes)}  ${entry.path}\n`] : [],
  );
  const text = (path: string, content: string, mode = 0o644): DebianTarEntry => ({
    kind: 'file',
    path,
    mode,
    bytes: Buffer.from(content),
  });
  const { conffiles, scripts } = content;
  return [
    text('control', controlText(content, installedKibibytes(files))),
    text('md5sums', sums.join('')),
    ...(conffiles.length === 0 ? [] : [text('conffiles', `${conffiles.join('\n')}\n`)]),
    ...Object.entries(scripts).map(([name, script]) => text(name, script, 0o755)),
  ];
}

function controlText(content: DebianPackageContent, installed: number): string {
  const [summary = '', ...long] = content.description;
  const fields = {
    Package: content.name,
    Version: content.version,
    Architecture: content.architecture,
    'Installed-Size': String(installed),
    ...content.fields,
    Description: [summary, ...long.map((line) => ` ${line === '' ? '.' : line}`)].join('\n'),
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');
}

/** As dpkg-gencontrol counts: a kibibyte for an entry that is no file, files rounded up. */
function installedKibibytes(files: readonly DebianTarEntry[]): number {
  return files.reduce(
    (sum, entry) => sum + (entry.kind === 'file' ? Math.ceil(entry.bytes.length / kibibyte) : 1),
    0,
  );
}

interface Member {
  readonly name: string;
  readonly bytes: Uint8Array;
}

function arArchive(members: readonly Member[], mtimeSeconds: number): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from('!<arch>\n')];
  for (const { name, bytes } of members) {
    const fields: readonly [string | number, number][] = [
      [name, 16],
      [mtimeSeconds, 12],
      [0, 6],
      [0, 6],
      ['100644', 8],
      [bytes.length, 10],
    ];
    const head = `${fields.map(([value, width]) => String(value).padEnd(width)).join('')}\`\n`;
    if (head.length !== arHeaderBytes) throw new Error(`${name} does not fit an archive's header`);
    parts.push(Buffer.from(head, 'latin1'), bytes);
    if (bytes.length % 2 === 1) parts.push(Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}
