/** The content of each package: one function for each, from the built parts to its files. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { completionScripts, manPages } from '@rackwright/cli/packaged';
import type { RamdiskArchitecture } from '@rackwright/runner/ramdisk';
import type { Bundle, BundledPart } from './bundle.ts';
import type { DebianPackageContent, ScriptName } from './deb.ts';
import type { NodeProgram } from './node-program.ts';
import type { DebianTarEntry } from './tar.ts';

/** The programs, each with its package. */
export const programs = {
  agent: {
    package: 'rackwright-agent',
    entry: 'agent/src/main.ts',
    bundleName: 'agent.mjs',
    form: 'parts',
    depends: 'passwd, systemd (>= 247), ipmitool, ipxe',
    recommends: 'rackwright-ramdisk',
    description: [
      'agent of a rack, of the bare-metal life-cycle software Rackwright',
      'It stands on the provisioning network of a rack: it powers hosts through',
      'their BMCs, boots them by PXE, and has them inspected and wiped. It owns no',
      'state: it dials the control plane and does what is ordered there.',
    ],
  },
  controlplane: {
    package: 'rackwright-controlplane',
    entry: 'controlplane/src/main.ts',
    bundleName: 'controlplane.mjs',
    form: 'whole',
    depends: 'passwd, systemd (>= 247)',
    recommends: 'rackwright-cli',
    description: [
      'control plane of the bare-metal life-cycle software Rackwright',
      'It owns all state of a fleet of bare-metal hosts: it decides what is done',
      'with each, orders it from the agents of their racks, and keeps the proof of',
      'every erasure.',
    ],
  },
  cli: {
    package: 'rackwright-cli',
    entry: 'packages/cli/src/main.ts',
    bundleName: 'rackwright.mjs',
    form: 'parts',
    depends: '',
    recommends: '',
    description: [
      'operators’ command of the bare-metal life-cycle software Rackwright',
      'It shows and changes what the control plane knows: hosts, racks, templates,',
      'workflows, and the certificates of erased disks.',
    ],
  },
} as const;
export type ProgramName = keyof typeof programs;
export const programNames = Object.keys(programs) as ProgramName[];

const filesFolder = join(import.meta.dirname, '../files');
const maintainer = 'Rackwright maintainers <maintainers@rackwright.org>';
/** Node asks for these of the machine; Debian 11 has them. */
const nodeDepends = 'libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 10)';
const scriptNames: readonly ScriptName[] = ['preinst', 'postinst', 'prerm', 'postrm'];
const gzipLevel = 9;
const generator = 'rackwright-agent-generator';

/** The shared parts of all packages of one build. */
export interface Release {
  readonly version: string;
  /** The time of the packed commit. */
  readonly timeSeconds: number;
}

/** The package of a program for one processor. */
export function programPackage(
  name: ProgramName,
  architecture: RamdiskArchitecture,
  release: Release,
  parts: {
    readonly bundle: Bundle;
    readonly node: NodeProgram;
    /** Made from the program itself, as its man pages. */
    readonly made: readonly DebianTarEntry[];
    /** The files that the program serves, by paths beside it. */
    readonly served: ReadonlyMap<string, Uint8Array>;
  },
): DebianPackageContent {
  const about = programs[name];
  const library = `usr/lib/${about.package}`;
  const { bundle, node, served } = parts;
  const command = name === 'cli' ? 'rackwright' : about.package;
  const configuration = name === 'cli' ? [] : [file(`etc/rackwright/${name}.yaml`, name)];
  const files = [
    { kind: 'file', path: `${library}/node`, mode: 0o755, bytes: node.bytes } as const,
    text(`${library}/${about.bundleName}`, bundle.code),
    ...bundle.chunks.map((chunk) => text(`${library}/${chunk.name}`, chunk.code)),
    ...[...served].map(([path, bytes]) => text(`${library}/${path}`, bytes)),
    text(`usr/bin/${command}`, read(name, command), 0o755),
    ...configuration,
    ...parts.made,
    ...units(name),
    // Node is linked with the libraries that its authors have tested it with.
    text(`usr/share/lintian/overrides/${about.package}`, overrides(about.package)),
    ...documents(about.package, name, release, [
      { name: 'Node.js', version: node.version, licence: 'MIT and others', text: node.licence },
      ...bundle.parts,
    ]),
  ];
  const { depends, recommends, description } = about;
  return {
    name: about.package,
    version: release.version,
    architecture,
    fields: {
      Maintainer: maintainer,
      Section: 'admin',
      Priority: 'optional',
      Depends: [nodeDepends, depends].filter(Boolean).join(', '),
      ...(recommends === '' ? {} : { Recommends: recommends }),
    },
    description,
    files,
    conffiles: configuration.map(({ path }) => `/${path}`),
    scripts: scriptsOf(name),
    compressible: true,
  };
}

/** By the processors of the hosts that boot them; an agent of either architecture serves both. */
const ramdisks = {
  amd64: { suffix: '', processors: 'x86-64' },
  arm64: { suffix: '-arm64', processors: 'arm64' },
} as const satisfies Readonly<Record<RamdiskArchitecture, object>>;

/** The package of a ramdisk and its kernel; `inside` lists its parts of other authors. */
export function ramdiskPackage(
  release: Release,
  architecture: RamdiskArchitecture,
  parts: {
    readonly vmlinuz: Uint8Array;
    readonly initrd: Uint8Array;
    readonly manifest: Uint8Array;
    readonly inside: readonly BundledPart[];
  },
): DebianPackageContent {
  const { suffix, processors } = ramdisks[architecture];
  const name = `rackwright-ramdisk${suffix}`;
  const folder = `usr/lib/rackwright/ramdisk${suffix}`;
  return {
    name,
    version: release.version,
    architecture: 'all',
    fields: { Maintainer: maintainer, Section: 'admin', Priority: 'optional' },
    description: [
      'what hosts of Rackwright boot to be inspected and wiped',
      'A Linux kernel and a ramdisk with disk tools and the runner of Rackwright,',
      `for machines with ${processors} processors. The agent of a rack serves them.`,
    ],
    files: [
      text(`${folder}/vmlinuz`, parts.vmlinuz),
      text(`${folder}/initrd`, parts.initrd),
      text(`${folder}/manifest.json`, parts.manifest),
      ...documents(name, 'ramdisk', release, parts.inside),
    ],
    conffiles: [],
    scripts: {},
    compressible: false,
  };
}

/** Of each package, the files below its `examples` folder. */
const exampleFiles: Readonly<Record<string, readonly string[]>> = {
  controlplane: ['secrets-key.conf', 'rackwright.rules.yaml', 'rackwright-dashboard.json'],
};

/** README, changelog and copyright, and the licences of the parts of other authors, unchanged. */
function documents(
  packageName: string,
  source: string,
  { version, timeSeconds }: Release,
  inside: readonly BundledPart[],
): DebianTarEntry[] {
  const folder = `usr/share/doc/${packageName}`;
  const date = new Date(timeSeconds * 1_000).toUTCString().replace('GMT', '+0000');
  const changes =
    `${packageName} (${version}) stable; urgency=medium\n\n  * Version ${version}.\n\n` +
    ` -- ${maintainer}  ${date}\n`;
  const fileOf = (part: BundledPart): string => `licences/${part.name.replaceAll('/', '__')}`;
  const lines = inside.map(
    (part) =>
      `  ${part.name} ${part.version}: ${part.licence}` +
      (part.text === '' ? '' : `, ${fileOf(part)}`),
  );
  const copyright = [
    `Rackwright: Copyright ${new Date(timeSeconds * 1_000).getUTCFullYear()} its authors. It is`,
    'licensed under the Apache License, version 2.0: see',
    '/usr/share/common-licenses/Apache-2.0.',
    '',
    'This package contains the following, each under its own licence, whose text stands in the',
    'file beside this one that is named here:',
    '',
    ...lines,
    '',
  ];
  const examples = exampleFiles[source] ?? [];
  return [
    text(`${folder}/README`, read(source, 'README')),
    text(`${folder}/changelog.gz`, gzipSync(changes, { level: gzipLevel })),
    text(`${folder}/copyright`, copyright.join('\n')),
    ...examples.map((name) => text(`${folder}/examples/${name}`, read(source, name))),
    ...inside
      .filter((part) => part.text !== '')
      .map((part) => text(`${folder}/${fileOf(part)}`, `${part.text}\n`)),
  ];
}

/** Files of the command: man pages, and scripts by which shells complete it. */
export async function commandFiles({ version, timeSeconds }: Release): Promise<DebianTarEntry[]> {
  const date = new Date(timeSeconds * 1_000).toISOString().slice(0, 10);
  const pages = await manPages(version, date);
  const { bash, zsh, fish } = completionScripts;
  return [
    ...pages.map((page) =>
      text(`usr/share/man/man1/${page.name}.gz`, gzipSync(page.text, { level: gzipLevel })),
    ),
    text('usr/share/bash-completion/completions/rackwright', bash),
    text('usr/share/zsh/vendor-completions/_rackwright', zsh),
    text('usr/share/fish/vendor_completions.d/rackwright.fish', fish),
  ];
}

function overrides(packageName: string): string {
  return `${packageName}: embedded-library * [usr/lib/${packageName}/node]\n`;
}

function units(name: ProgramName): DebianTarEntry[] {
  return readdirSync(join(filesFolder, name))
    .filter((file) => /\.(service|socket|path)$/.test(file))
    .map((file) => text(`usr/lib/systemd/system/${file}`, read(name, file)))
    .concat(
      name === 'agent'
        ? [text(`usr/lib/systemd/system-generators/${generator}`, read(name, generator), 0o755)]
        : [],
    );
}

function scriptsOf(name: ProgramName): Partial<Record<ScriptName, string>> {
  const there = new Set(readdirSync(join(filesFolder, name)));
  return Object.fromEntries(
    scriptNames.filter((script) => there.has(script)).map((script) => [script, read(name, script)]),
  );
}

function file(path: string, name: string): DebianTarEntry {
  return text(path, read(name, path.replace(/^.*\//, '')));
}

function text(path: string, content: string | Uint8Array, mode = 0o644): DebianTarEntry {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { kind: 'file', path, mode, bytes };
}

function read(folder: string, name: string): string {
  return readFileSync(join(filesFolder, folder, name), 'utf8');
}
