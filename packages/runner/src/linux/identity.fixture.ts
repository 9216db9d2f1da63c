/** What `hdparm --Istdout` prints: 256 words of IDENTIFY DEVICE, eight a line. */
export function identityText(words: Readonly<Record<number, number>>): string {
  const hex = Array.from({ length: 256 }, (_, at) =>
    (words[at] ?? 0).toString(16).padStart(4, '0'),
  );
  const lines = Array.from({ length: 32 }, (_, at) => hex.slice(8 * at, 8 * at + 8).join(' '));
  return `\n/dev/sda:\n${lines.join('\n')}\n`;
}
