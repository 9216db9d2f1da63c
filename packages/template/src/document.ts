/**
 * A YAML document as a tree of nodes that know where they stand.
 *
 * Invariants:
 * 1. Bounded: at most `sourceBytesMax` of source and `depthMax` of depth are looked at, and the
 *    depth is measured before anything recursive reads it. Anchors and aliases are refused, so that
 *    nothing grows beyond its text.
 * 2. One document, YAML 1.2, core schema; tags and directives are refused.
 * 3. Nothing is thrown.
 */
import { Composer, type CST, isAlias, isMap, isScalar, isSeq, type Pair, Parser } from 'yaml';
import { depthMax, sourceBytesMax } from './limits.ts';
import { type Problems, quoted } from './problems.ts';

export type Node = MapNode | ListNode | ScalarNode;

export interface MapNode {
  readonly kind: 'map';
  readonly at: number;
  readonly entries: readonly MapEntry[];
  /** No key of it was refused. */
  readonly isWhole: boolean;
}

export interface MapEntry {
  readonly key: string;
  /** The position of the key. */
  readonly at: number;
  readonly value: Node;
}

export interface ListNode {
  readonly kind: 'list';
  readonly at: number;
  readonly items: readonly Node[];
}

export interface ScalarNode {
  readonly kind: 'scalar';
  readonly at: number;
  readonly end: number;
  readonly type: 'text' | 'integer' | 'number' | 'boolean' | 'null';
  /** The content of a text; of every other node its source. */
  readonly text: string;
  readonly style: 'plain' | 'single' | 'double' | 'block';
}

/** The root; undefined when a problem was found that leaves nothing to look at. */
export function readDocument(source: string, problems: Problems): Node | undefined {
  const bytes = new TextEncoder().encode(source).byteLength;
  if (bytes > sourceBytesMax) {
    problems.add(0, '', `is ${bytes} bytes long; at most ${sourceBytesMax} are taken`);
    return undefined;
  }
  if (!source.isWellFormed()) {
    problems.add(0, '', 'is no Unicode text; save it as UTF-8');
    return undefined;
  }
  const tokens = [...new Parser().parse(source)];
  if (!mayBeComposed(tokens, source, problems)) return undefined;
  const options = { uniqueKeys: false, version: '1.2', schema: 'core', merge: false } as const;
  const [document] = new Composer(options).compose(tokens, true, source.length);
  if (document === undefined) return undefined;
  for (const { pos, message } of document.errors) problems.add(pos[0], '', message);
  if (document.errors.length > 0) return undefined;
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) {
    problems.add(0, '', 'is empty; a template has at least steps');
    return undefined;
  }
  return nodeOf(root, 0, '', problems);
}

/** Directives, further documents and depth are refused before anything else reads the tokens. */
function mayBeComposed(tokens: readonly CST.Token[], source: string, problems: Problems): boolean {
  const before = problems.count;
  const documents = tokens.filter((token) => token.type === 'document');
  for (const token of tokens) {
    if (token.type === 'directive') {
      problems.add(token.offset, '', `${quoted(token.source)} is not taken; write plain YAML 1.2`);
    }
  }
  if (documents[1] !== undefined) {
    const message = 'is a second document; a file holds one template';
    problems.add(documents[1].offset, '', message);
  }
  const deep = firstTooDeep(documents);
  if (deep !== undefined) {
    const message = `is nested too deeply; at most ${depthMax} maps and lists go into each other`;
    problems.add(Math.min(deep, source.length), '', message);
  }
  return problems.count === before;
}

/** The position of the first collection that is nested too deep; no recursion (invariant 1). */
function firstTooDeep(documents: readonly CST.Document[]): number | undefined {
  const ahead: { token: CST.Token; depth: number }[] = documents.flatMap(({ value }) =>
    value === undefined ? [] : [{ token: value, depth: 1 }],
  );
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const { token, depth } = next;
    if (!('items' in token)) continue;
    if (depth > depthMax) return token.offset;
    for (const item of token.items) {
      const { key, value } = item as { key?: CST.Token | null; value?: CST.Token };
      if (key) ahead.push({ token: key, depth: depth + 1 });
      if (value) ahead.push({ token: value, depth: depth + 1 });
    }
  }
  return undefined;
}

function nodeOf(node: unknown, near: number, path: string, problems: Problems): Node {
  const at = startOf(node, near);
  if (isAlias(node)) {
    problems.add(at, path, `*${node.source} is an alias; anchors and aliases are not taken`);
    return textAt(at);
  }
  if (!isMap(node) && !isSeq(node) && !isScalar(node)) return nothingAt(at);
  if (node.anchor !== undefined) {
    problems.add(at, path, `&${node.anchor} is an anchor; anchors and aliases are not taken`);
  }
  if (node.tag !== undefined) {
    problems.add(at, path, `${quoted(node.tag)} is a tag; tags are not taken`);
    return textAt(at);
  }
  if (isMap(node)) return mapOf(node.items, at, path, problems);
  if (isSeq(node)) {
    const items = node.items.map((item, index) => nodeOf(item, at, `${path}[${index}]`, problems));
    return { kind: 'list', at, items };
  }
  return scalarOf(node, at, path, problems);
}

function mapOf(pairs: readonly Pair[], at: number, path: string, problems: Problems): MapNode {
  const kept: { key: string; at: number; below: string; value: unknown }[] = [];
  const before = problems.count;
  const seen = new Map<string, number>();
  for (const { key, value } of pairs) {
    const keyAt = startOf(key, at);
    if (isMap(key)) {
      problems.add(keyAt, path, 'has a map as a key; put a text with {{ … }} in quotes');
      continue;
    }
    const node = nodeOf(key, keyAt, path, problems);
    if (node.kind !== 'scalar' || node.type !== 'text') {
      const shown = node.kind === 'scalar' ? ` ${quoted(node.text)}` : '';
      problems.add(keyAt, path, `has the key${shown}, which is no text; put it in quotes`);
      continue;
    }
    const below = path === '' ? node.text : `${path}.${node.text}`;
    if (seen.has(node.text)) {
      problems.add(keyAt, below, `${quoted(node.text)} is given twice`);
      continue;
    }
    seen.set(node.text, keyAt);
    kept.push({ key: node.text, at: keyAt, below, value });
  }
  const isWhole = problems.count === before;
  const entries = kept.map(({ key, at: keyAt, below, value }) => ({
    key,
    at: keyAt,
    value: nodeOf(value, keyAt, below, problems),
  }));
  return { kind: 'map', at, entries, isWhole };
}

interface YamlScalar {
  value: unknown;
  source?: string;
  type?: string;
  range?: readonly number[] | null;
}

/** Control characters that no text of a template has. */
const control = /[\p{Cc}]/u;

function scalarOf(node: YamlScalar, at: number, path: string, problems: Problems): ScalarNode {
  const { value, range } = node;
  const written = node.source ?? String(value);
  const end = range?.[1] ?? at;
  const scalar = { kind: 'scalar', at, end, style: styleOf(node.type) } as const;
  switch (typeof value) {
    case 'string': {
      const stray = control.exec(value.replaceAll(/[\t\n\r]/g, ''))?.[0];
      if (stray !== undefined || !value.isWellFormed()) {
        const code = stray?.codePointAt(0)?.toString(16).padStart(4, '0') ?? 'surrogate';
        problems.add(at, path, `holds the character U+${code}; only texts are taken`);
      }
      return { ...scalar, type: 'text', text: value };
    }
    case 'number':
    case 'bigint':
      return { ...scalar, type: /^[-+]?\d+$/.test(written) ? 'integer' : 'number', text: written };
    case 'boolean':
      return { ...scalar, type: 'boolean', text: String(value) };
    default:
      return { ...scalar, type: 'null', text: '' };
  }
}

function styleOf(type: string | undefined): ScalarNode['style'] {
  switch (type) {
    case 'QUOTE_DOUBLE':
      return 'double';
    case 'QUOTE_SINGLE':
      return 'single';
    case 'BLOCK_LITERAL':
    case 'BLOCK_FOLDED':
      return 'block';
    default:
      return 'plain';
  }
}

function startOf(node: unknown, otherwise: number): number {
  const range = (node as { range?: readonly number[] | null } | null)?.range;
  return range?.[0] ?? otherwise;
}

/** In place of a node that has been refused already. */
function textAt(at: number): ScalarNode {
  return { ...nothingAt(at), type: 'text', text: '-' };
}

function nothingAt(at: number): ScalarNode {
  return { kind: 'scalar', at, end: at, type: 'null', text: '', style: 'plain' };
}
