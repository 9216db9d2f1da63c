/** The page of a resource that is not there to be shown: not read yet, or not to be read. */
import type { ComponentChildren } from 'preact';
import type { Failure } from '../logic/failure.ts';
import { idOf } from '../logic/format.ts';
import { Loading, PageHead } from './basics.tsx';
import { FailureBox } from './errors.tsx';

interface UnreadProps {
  readonly name: string;
  /** "rack" */
  readonly kind: string;
  readonly above?: ComponentChildren;
  /** Undefined: it is being read. */
  readonly failure: Failure | undefined;
  readonly retry: () => void;
}

export function Unread({ name, kind, above, failure, retry }: UnreadProps) {
  return (
    <>
      <PageHead title={idOf(name)} above={above} />
      {failure === undefined ? (
        <Loading subject={`Reading the ${kind}`} />
      ) : (
        <FailureBox subject={`${name} cannot be shown`} failure={failure} retry={retry} />
      )}
    </>
  );
}
