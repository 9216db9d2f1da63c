/** The words of a command line as a shell splits it, without expansions. Pure. */

const piece = /'([^']*)'|"([^"]*)"|([^\s'"#]+#*)/y;

/**
 * Splits at spaces. Single and double quotes keep words together, and `#` after a space begins a
 * comment. Throws for a quote that is not closed.
 */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  let at = 0;
  while (at < line.length) {
    at = skipSpaces(line, at);
    if (at >= line.length || line[at] === '#') break;
    let word = '';
    while (at < line.length && !/\s/.test(line[at] ?? '')) {
      piece.lastIndex = at;
      const found = piece.exec(line);
      if (found === null) throw new Error(`a quote is not closed: ${line.slice(at)}`);
      word += found[1] ?? found[2] ?? found[3] ?? '';
      at = piece.lastIndex;
    }
    words.push(word);
  }
  return words;
}

function skipSpaces(line: string, from: number): number {
  let at = from;
  while (at < line.length && /\s/.test(line[at] ?? '')) at += 1;
  return at;
}
