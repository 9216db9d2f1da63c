/** The shape of our URLs and TFTP names: no other module knows it. */
import { canonicalMac, hyphenatedMac, type Mac, uBootScriptName } from '@rackwright/dhcp';

export interface BootUrls {
  /** Our IPv4 address: runners dial it. */
  readonly serverAddress: string;
  /** "http://ADDRESS:PORT" */
  readonly root: string;
  script(mac: Mac): string;
  /** A file of one host's boot; asking for it asks for permission. */
  hostFile(mac: Mac, name: string): string;
  /** A blob of an image, by the hex of its SHA-256. */
  blob(hex: string): string;
}

/** `filesPort`: of another server, which serves the hosts' files by our leave; 0: we do. */
export function bootUrls(serverAddress: string, httpPort: number, filesPort = 0): BootUrls {
  return urlsOf(serverAddress, serverAddress, httpPort, filesPort);
}

/** The same for a host that speaks IPv6 with us; the other server serves nothing by that. */
export function bootUrls6(address6: string, serverAddress: string, httpPort: number): BootUrls {
  return urlsOf(`[${address6}]`, serverAddress, httpPort, 0);
}

function urlsOf(
  ours: string,
  serverAddress: string,
  httpPort: number,
  filesPort: number,
): BootUrls {
  const rootAt = (port: number) => `http://${ours}${port === 80 ? '' : `:${port}`}`;
  const root = rootAt(httpPort);
  const filesRoot = rootAt(filesPort === 0 ? httpPort : filesPort);
  return {
    serverAddress,
    root,
    script: (mac) => `${root}/boot/${hyphenatedMac(mac)}/script.ipxe`,
    hostFile: (mac, name) => `${filesRoot}/boot/${hyphenatedMac(mac)}/files/${name}`,
    blob: (hex) => `${root}/v2/blobs/sha256/${hex}`,
  };
}

export type BootUrlTarget =
  | { readonly kind: 'script'; readonly mac: Mac; readonly language: 'ipxe' | 'grub' }
  /** The first script of GRUB, the same for every host. */
  | { readonly kind: 'grubStart' }
  | { readonly kind: 'hostFile'; readonly mac: Mac; readonly name: string }
  /** A file without a host: loaders, kernel and ramdisk hold no secret. */
  | { readonly kind: 'file'; readonly name: string }
  /** A blob of an image, by the hex of its SHA-256. Anyone who knows the digest may fetch it. */
  | { readonly kind: 'blob'; readonly hex: string }
  /** A host reports that it runs the image that was deployed to it; never written to a log. */
  | { readonly kind: 'phoneHome'; readonly id: string; readonly token: string }
  /** First-boot data of a host without a disk; its token is never written to a log either. */
  | {
      readonly kind: 'seed';
      readonly id: string;
      readonly token: string;
      readonly name: string;
    }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'nothing' };

/** The host of a target: ours, or the one that an absolute-form names. */
export interface TargetForm {
  /** Path and query. */
  readonly path: string;
  /** Host of an absolute-form (RFC 9112 §3.2.2), without its port. */
  readonly host?: string;
}

/** A target in its two forms; any other is handed on as a path that asks for nothing. */
export function targetForm(target: string): TargetForm {
  const found = /^http:\/\/([^/?#@]+)([/?].*)?$/is.exec(target);
  if (found === null) return { path: target };
  const [, authority = '', rest = '/'] = found;
  const host = authority.replace(/:\d*$/, '');
  return { path: rest.startsWith('/') ? rest : `/${rest}`, host };
}

/** The target of a request's path. Nothing is decoded: no name of ours needs it. */
export function parseTarget(target: string): BootUrlTarget {
  if (!target.startsWith('/')) return { kind: 'malformed' };
  const [path = ''] = target.split('?');
  const [, first = '', ...rest] = path.split('/');
  return targetsBelow.get(first)?.(rest) ?? { kind: 'nothing' };
}

/** The target of the remaining path, by its first part; undefined: none. */
const targetsBelow: ReadonlyMap<string, (parts: readonly string[]) => BootUrlTarget | undefined> =
  new Map([
    ['files', fileTarget],
    ['v2', blobTarget],
    ['phone-home', phoneHomeTarget],
    ['seed', seedTarget],
    ['grub', grubTarget],
    ['boot', hostTarget],
  ]);

function fileTarget([name, ...more]: readonly string[]): BootUrlTarget | undefined {
  return name !== undefined && more.length === 0 ? { kind: 'file', name } : undefined;
}

function blobTarget([blobs, algorithm, hex, ...more]: readonly string[]):
  | BootUrlTarget
  | undefined {
  const isBlob = blobs === 'blobs' && algorithm === 'sha256' && more.length === 0;
  return isBlob && hex !== undefined ? { kind: 'blob', hex } : undefined;
}

function phoneHomeTarget([id, token, ...more]: readonly string[]): BootUrlTarget | undefined {
  return id && token && more.length === 0 ? { kind: 'phoneHome', id, token } : undefined;
}

function seedTarget([id, token, name, ...more]: readonly string[]): BootUrlTarget | undefined {
  return id && token && name && more.length === 0 ? { kind: 'seed', id, token, name } : undefined;
}

function grubTarget(parts: readonly string[]): BootUrlTarget | undefined {
  return isGrubStart(`/grub/${parts.join('/')}`) ? { kind: 'grubStart' } : undefined;
}

function hostTarget([text, kind, name, ...more]: readonly string[]): BootUrlTarget | undefined {
  if (text === undefined || kind === undefined || more.length > 0) return undefined;
  const mac = canonicalMac(text);
  if (mac === undefined) return { kind: 'malformed' };
  if (kind === 'script.ipxe' && name === undefined)
    return { kind: 'script', mac, language: 'ipxe' };
  if (kind === 'grub.cfg' && name === undefined) return { kind: 'script', mac, language: 'grub' };
  if (kind === 'files' && name !== undefined) return { kind: 'hostFile', mac, name };
  return undefined;
}

/**
 * Whether a path is that of GRUB's first script. The network loaders that Debian
 * signs look for it there, first for their own platform (their built-in `grub.cfg`).
 */
function isGrubStart(path: string): boolean {
  return /^\/grub\/(x86_64-efi\/|arm64-efi\/)?grub\.cfg$/.test(path);
}

/** The name by which TFTP serves a loader to one host. */
export function loaderPath(mac: Mac, name: string): string {
  return `${hyphenatedMac(mac)}/${name}`;
}

/**
 * The target of a TFTP request: a path of our URLs that GRUB or U-Boot requests, a script of
 * U-Boot's, or a loader.
 */
export type TftpTarget =
  | (BootUrlTarget & { readonly kind: 'script' | 'grubStart' | 'hostFile' | 'blob' })
  | { readonly kind: 'script'; readonly mac: Mac; readonly language: 'uBoot' }
  /** The first script of U-Boot, the same for every host. */
  | { readonly kind: 'uBootStart' }
  | { readonly kind: 'loader'; readonly mac: Mac | undefined; readonly name: string };

/** The target of a TFTP name. */
export function parseTftpName(fileName: string): TftpTarget {
  const path = fileName.replace(/^\/+/, '');
  const ofUBoot = uBootTarget(path);
  if (ofUBoot !== undefined) return ofUBoot;
  const target = parseTarget(`/${path}`);
  switch (target.kind) {
    case 'script':
    case 'grubStart':
    case 'hostFile':
    case 'blob':
      return target;
    default:
      return { kind: 'loader', ...parseLoaderPath(fileName) };
  }
}

/**
 * U-Boot asks for its script by the name that its boards have built in, and for the configuration
 * of `pxe get` as PXELINUX does: first by its hardware type, Ethernet, and its MAC.
 */
function uBootTarget(path: string): TftpTarget | undefined {
  if (path === uBootScriptName) return { kind: 'uBootStart' };
  const text = /^pxelinux\.cfg\/01-([0-9a-f-]+)$/i.exec(path)?.[1];
  const mac = text === undefined ? undefined : canonicalMac(text);
  return mac === undefined ? undefined : { kind: 'script', mac, language: 'uBoot' };
}

/** A TFTP name taken apart; without a MAC it asks for the plain file. */
export function parseLoaderPath(fileName: string): { mac: Mac | undefined; name: string } {
  // Some firmware puts a slash before the name that it was given, or joins a folder and a name that
  // both have one.
  const path = fileName.replace(/\/+/g, '/').replace(/^\//, '');
  const slash = path.indexOf('/');
  const mac = slash < 0 ? undefined : canonicalMac(path.slice(0, slash));
  return mac === undefined ? { mac, name: path } : { mac, name: path.slice(slash + 1) };
}
