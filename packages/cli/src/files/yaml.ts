/**
 * YAML as people write it into files, with the place of each problem. Two readers use it: of files
 * of objects, and of the manifest.
 *
 * Invariants:
 * 1. A text that exceeds the bounds of size, depth or number is refused before anything is made of
 *    it.
 * 2. No directive is accepted: another version of YAML reads plain words differently.
 */
import {
  Composer,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Parser,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { firstTooDeep } from './depth.ts';

const problemsMax = 50;
/** The nesting depth of maps and lists; no object needs half of it. */
const depthMax = 32;

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export interface YamlProblem extends TextPosition {
  readonly message: string;
}

/** One text, and its problems. */
export class YamlText {
  readonly #text: string;
  readonly #bytesMax: number;
  readonly #lines = new LineCounter();
  readonly #problems: YamlProblem[] = [];

  constructor(text: string, bytesMax: number) {
    this.#text = text;
    this.#bytesMax = bytesMax;
  }

  get isSound(): boolean {
    return this.#problems.length === 0;
  }

  /** In the order of their places. */
  get problems(): YamlProblem[] {
    return this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  /** The content of each document that is not empty; nothing once there is a problem. */
  documents(): Node[] {
    if (Buffer.byteLength(this.#text) > this.#bytesMax) {
      this.tellAt({ line: 1, column: 1 }, `is larger than ${this.#bytesMax} bytes`);
      return [];
    }
    const tokens = [...new Parser(this.#lines.addNewLine).parse(this.#text)];
    for (const token of tokens) {
      if (token.type !== 'directive') continue;
      this.#tell(token.offset, `${token.source} is not taken; write plain YAML 1.2`);
    }
    const deep = firstTooDeep(tokens, depthMax);
    if (deep !== undefined) {
      this.#tell(deep, `is nested too deeply; at most ${depthMax} maps and lists in each other`);
      return [];
    }
    const found: Node[] = [];
    for (const { errors, contents } of new Composer({
      prettyErrors: false,
      uniqueKeys: true,
    }).compose(tokens)) {
      for (const { pos, message } of errors) this.#tell(pos[0], message);
      if (contents === null || (isScalar(contents) && contents.value === null)) continue;
      found.push(contents);
    }
    return this.isSound ? found : [];
  }

  /** Names and values of a map. */
  *entries(map: YAMLMap): Generator<readonly [string, Node, Node | null]> {
    const seen = new Set<string>();
    for (const { key, value } of map.items) {
      const isName =
        isScalar(key) && (typeof key.value === 'string' || typeof key.value === 'number');
      const name = isName ? writtenAs(key) : '';
      // A JavaScript object would lose this key, and a repeated key would replace the value before.
      if (name === '__proto__') this.wrong(key as Node, '"__proto__" cannot be a name');
      else if (seen.has(name)) this.wrong(key as Node, `"${name}" stands there already`);
      else if (isName) yield [name, key, (value as Node | null) ?? null];
      else this.wrong(key as Node, 'is no name of a field');
      if (isName) seen.add(name);
    }
  }

  wrong(node: Node | null, message: string): undefined {
    this.#tell(node?.range?.[0] ?? 0, message);
    return undefined;
  }

  tellAt({ line, column }: TextPosition, message: string): void {
    if (this.#problems.length < problemsMax) this.#problems.push({ line, column, message });
  }

  positionOf(node: Node): TextPosition {
    return this.#positionAt(node.range?.[0] ?? 0);
  }

  #tell(offset: number, message: string): void {
    this.tellAt(this.#positionAt(offset), message);
  }

  #positionAt(offset: number): TextPosition {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}

/** The items of a list, or the node that is there instead of one. */
export function listed(node: Node): Node[] {
  return isSeq(node) ? (node.items as Node[]) : [node];
}

/** The text of a text value; for all others the source text: "0012", not its number. */
export function writtenAs({ value, source }: Scalar): string {
  return typeof value === 'string' ? value : (source ?? String(value));
}
