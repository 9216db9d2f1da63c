/** What a host has written last to its serial console while no runner has come from its boot. */

interface LastScreenProps {
  /** Plain text that a machine wrote; empty: nothing was heard. */
  readonly lines: readonly string[];
}

export function LastScreen({ lines }: LastScreenProps) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>Its serial console showed last</h3>
      <pre tabIndex={0} aria-label="Last lines of the serial console">
        {lines.join('\n')}
      </pre>
    </>
  );
}
