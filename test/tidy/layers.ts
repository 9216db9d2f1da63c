/**
 * Which way imports may point (arrows only downward):
 *
 *   test → {agent, controlplane, cli} → packages → {bytes, messages, platform}
 *
 * T1 Only the platform, and the places named in `worldly`, touch sockets, files, timers and the
 *    process, so that everything else runs in the simulation.
 */
import { importsOf } from './imports.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** Places of production code that touch the world, each with its reason (T1). */
export const worldly: readonly { place: RegExp; reason: string }[] = [
  { place: /^packages\/platform\/src\/node\//, reason: 'the real platform' },
  { place: /^packages\/rpc\/src\//, reason: 'grpc-js has sockets and timers of its own' },
  { place: /^packages\/store\/src\/(sqlite|nats)\//, reason: 'drivers of real stores' },
  { place: /^packages\/sim\/src\/heap\.ts$/, reason: 'lets promises settle between events' },
  { place: /^packages\/sim\/src\/loopback\//, reason: 'doubles that real clients connect to' },
  {
    place: /^packages\/sim\/src\/(firmware|machine)\//,
    reason: 'machines on real sockets, as processes',
  },
  { place: /^packages\/demo\/src\//, reason: 'starts and ends the real programs' },
  { place: /^packages\/(runner\/ramdisk|debian\/src|clients\/src)\//, reason: 'a build script' },
  { place: /^packages\/runner\/src\/linux\//, reason: 'block devices, sysfs and file disks' },
  { place: /^packages\/console\/src\/browser\//, reason: 'the browser: its clock, calls, cookie' },
  { place: /^packages\/console\/src\/build\//, reason: 'a build script' },
  { place: /(^|\/)main\.tsx?$/, reason: 'a program: it hands the platform to the rest' },
];

export function isWorldly(path: string): boolean {
  return worldly.some(({ place }) => place.test(path));
}

interface Layer {
  readonly from: RegExp;
  readonly imports: RegExp;
  readonly message: string;
  /** Tests may stand above their own layer. */
  readonly testsToo: boolean;
}

const worldModules =
  /^node:(fs|net|tls|http|https|http2|dgram|dns|child_process|worker_threads|cluster|timers|os|process|readline|perf_hooks|sqlite)(\/|$)/;

/** What only reads texts, although its module opens sockets. */
const pureImport = /^import \{ (isIP(v[46])?(, )?)+ \} from 'node:net'$/;

const layers: readonly Layer[] = [
  {
    from: /^packages\//,
    imports: /^@rackwright\/(agent|controlplane|test)(\/|$)/,
    message: 'points upward; packages know no program',
    testsToo: true,
  },
  {
    from: /^agent\//,
    imports: /^@rackwright\/(controlplane|store|cli)(\/|$)/,
    message: 'is not for the agent: it holds no state and knows no control plane (R1)',
    testsToo: true,
  },
  {
    from: /^controlplane\//,
    imports: /^@rackwright\/(agent|dhcp|tftp|bmc|runner|cli)(\/|$)/,
    message: 'is the rack side; the control plane reaches a rack only through the session',
    testsToo: true,
  },
  {
    from: /^packages\/cli\//,
    imports: /^@rackwright\/(store|dhcp|tftp|bmc|runner)(\/|$)/,
    message: 'is not for the command: it speaks to the control plane only',
    testsToo: true,
  },
  {
    from: /^packages\/(bytes|messages|platform)\//,
    imports: /^@rackwright\/(?!platform)/,
    message: 'points upward; this package is the bottom',
    testsToo: false,
  },
  {
    from: /^controlplane\/src\/(?!(control-plane|config|services\/index)\.ts|identity\/)/,
    imports: /^@rackwright\/rpc(\/|$)/,
    message: 'is one way to carry calls; handlers know messages only',
    testsToo: false,
  },
  {
    from: /^packages\/(?!(sim|demo)\/)|^agent\/|^controlplane\//,
    imports: /^@rackwright\/sim(\/|$)/,
    message: 'is the simulation; only tests run in it',
    testsToo: false,
  },
  {
    from: /^packages\/(bytes|dhcp|tftp|results|template)\/|\/src\/host\/(machine|life\/)/,
    imports: /^node:(?!assert)/,
    message: 'touches the machine; this code is pure',
    testsToo: false,
  },
  {
    from: /^packages\/(erasure|messages)\/|^controlplane\/src\/host\/(?!(shell|api|spec)\/)/,
    imports: /^node:(?!assert|crypto)/,
    message: 'touches the machine; this code is pure but for node:crypto',
    testsToo: false,
  },
];

/** Imports of one file that its layer forbids. */
export function findLayerFaults(file: SourceFile): Finding[] {
  const inTest = isTestCode(file.path);
  const rules = layers.filter(
    ({ from, testsToo }) => from.test(file.path) && (testsToo || !inTest),
  );
  const free = inTest || isWorldly(file.path);
  return importsOf(file.text).flatMap(({ specifier, line, statement }) => {
    const messages = rules
      .filter(({ imports }) => imports.test(specifier))
      .map(({ message }) => message);
    const isPure = pureImport.test(statement);
    if (!free && !isPure && worldModules.test(specifier))
      messages.push('touches the world; take a platform');
    if (!free && specifier === '@rackwright/platform/node') {
      messages.push('is the real platform; only main.ts hands it on');
    }
    return messages.map((message) => ({
      path: file.path,
      line,
      message: `"${specifier}" ${message}`,
    }));
  });
}
