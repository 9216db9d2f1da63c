/** Failures, each with what happened, why, and what to do. */
import { type Failure, toldOf } from '../logic/failure.ts';

interface FailureProps {
  /** What did not work, as a sentence: "The hosts cannot be listed". */
  readonly what: string;
  readonly failure: Failure;
  readonly retry?: () => void;
}

export function FailureBox({ what, failure, retry }: FailureProps) {
  const told = toldOf(what, failure);
  const reference = failure.metadata['reference'];
  return (
    <div class="failure" role="alert">
      <strong>{told.what}</strong>
      {failure.violations.length === 0 ? (
        <p>{told.why}</p>
      ) : (
        <ul>
          {failure.violations.map(({ field, description }) => (
            <li key={`${field} ${description}`}>
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
      <p class="advice">{told.advice}</p>
      {reference !== undefined && (
        <p>
          Reference: <code>{reference}</code>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
