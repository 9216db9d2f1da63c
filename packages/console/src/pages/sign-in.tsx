/** Signing in: by a token, or by the identity provider where there is one. */
import { useEffect, useState } from 'preact/hooks';
import { type Options, optionsOf, providerAddress, signIn } from '../browser/sign-in.ts';
import type { Failure } from '../logic/failure.ts';
import { FailureBox } from '../parts/errors.tsx';

interface SignInProps {
  /** Called once the sign-in is open. */
  readonly done: () => void;
  /** Why one has to sign in, where that is worth a word. */
  readonly failure?: Failure | undefined;
}

export function SignInForm({ done, failure: before }: SignInProps) {
  const [token, setToken] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState(before);
  const [options, setOptions] = useState<Options>({ issuer: undefined });
  useEffect(() => void optionsOf().then(setOptions), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const refused = await signIn(token.trim());
    setBusy(false);
    setFailure(refused);
    if (refused === undefined) done();
  };
  return (
    <form class="sign-in" onSubmit={(event) => void submit(event)}>
      {failure !== undefined && <FailureBox subject="You are not signed in" failure={failure} />}
      {options.issuer !== undefined && (
        <p>
          <a class="button primary" href={providerAddress(`/${location.hash}`)}>
            Sign in at {options.issuer}
          </a>
        </p>
      )}
      <label>
        Token
        <input
          type="password"
          name="token"
          value={token}
          required
          autoComplete="off"
          spellcheck={false}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <p class="quiet">
        An administrator makes one by <code>rackwright token create</code>. The first one stands in
        the file <code>identity/admin.token</code> of the control plane.
      </p>
      <button type="submit" class="primary" disabled={isBusy || token.trim() === ''}>
        Sign in
      </button>
    </form>
  );
}

export function SignInPage({ done, failure }: SignInProps) {
  return (
    <main class="sign-in-page">
      <h1>Rackwright</h1>
      <SignInForm done={done} failure={failure} />
    </main>
  );
}
