/**
 * The target of a layer's entry: the parts of its path below the root, or nowhere. Pure.
 *
 * 1. No name leads out of the root: an absolute one and one with ".." are refused, not corrected.
 * 2. Whiteouts (image-spec, "Layer Filesystem Changeset") are distinguished from files.
 */
import { OciError } from '../failure.ts';

export type LayerTarget =
  /** The root itself. */
  | { readonly kind: 'root' }
  | { readonly kind: 'entry'; readonly folder: readonly string[]; readonly name: string }
  /** `name` of the layers below is to be removed from `folder`. */
  | { readonly kind: 'whiteout'; readonly folder: readonly string[]; readonly name: string }
  /** Everything of the layers below is to be removed from `folder`. */
  | { readonly kind: 'opaque'; readonly folder: readonly string[] }
  /** Specific to the file system that the layer was made with, and of no use to others. */
  | { readonly kind: 'ignored' };

const partBytesMax = 255;
const pathBytesMax = 4_096;
const whiteoutPrefix = '.wh.';
const opaqueName = '.wh..wh..opq';
const encoder = new TextEncoder();

/** Throws `malformed`. */
export function layerTarget(name: string): LayerTarget {
  const parts = pathParts(name);
  const last = parts.at(-1);
  if (last === undefined) return { kind: 'root' };
  const folder = parts.slice(0, -1);
  // A whiteout is a file; an entry below one of that name would be hidden in it.
  if (folder.some((part) => part.startsWith(whiteoutPrefix))) throw refused(name, 'a whiteout');
  if (last === opaqueName) return { kind: 'opaque', folder };
  if (last.startsWith('.wh..wh.')) return { kind: 'ignored' };
  if (!last.startsWith(whiteoutPrefix)) return { kind: 'entry', folder, name: last };
  const hidden = last.slice(whiteoutPrefix.length);
  if (hidden === '' || hidden === '.' || hidden === '..') throw refused(name, 'no whiteout');
  return { kind: 'whiteout', folder, name: hidden };
}

/** The parts of a path below the root; throws `malformed` for a path that leads out of it. */
export function pathParts(name: string): string[] {
  if (name.startsWith('/')) throw refused(name, 'absolute');
  if (name.includes('\0')) throw refused(name, 'cut by a NUL');
  if (encoder.encode(name).length > pathBytesMax) throw refused(name, 'too long');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refused(name, 'with ".."');
  if (parts.some((part) => encoder.encode(part).length > partBytesMax)) {
    throw refused(name, 'too long');
  }
  return parts;
}

function refused(name: string, why: string): OciError {
  const shown = JSON.stringify(name.slice(0, 100));
  return new OciError('malformed', `the archive has the name ${shown}, which is ${why}`);
}
