/** Programs whose output is reported without the secrets that they get. */
import { Masking } from '@rackwright/messages';
import type { Programs } from './program.ts';

/** The same programs where there are no secrets. */
export function withoutSecrets(
  programs: Programs,
  secrets: Readonly<Record<string, string>>,
): Programs {
  const hidden = Object.values(secrets);
  if (hidden.length === 0) return programs;
  return {
    start: async (request, onOutput) => {
      const masking = new Masking(hidden);
      const tell = (piece: Uint8Array): void => {
        if (piece.length > 0) onOutput(piece);
      };
      const program = await programs.start(request, (piece) => tell(masking.push(piece)));
      const end = program.end.then((how) => {
        tell(masking.end());
        return how;
      });
      return { end, stop: () => program.stop() };
    },
  };
}
