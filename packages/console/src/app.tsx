/** The console from its first call on: who is it, then the pages, or signing in. */

import type { WhoAmIResponse } from '@rackwright/messages';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { ConsoleClients } from './browser/client.ts';
import type { PageClock } from './browser/clock.ts';
import { ConsoleContext } from './browser/console.ts';
import { ConsoleLink } from './browser/link.ts';
import { providerFailure, signOut, whoAmI } from './browser/sign-in.ts';
import type { Failure } from './logic/failure.ts';
import { Shell } from './pages/shell.tsx';
import { SignInForm, SignInPage } from './pages/sign-in.tsx';
import { Dialog } from './parts/dialog.tsx';
import { FailureBox } from './parts/errors.tsx';

/** A page that is not seen for so long ends its watch: browsers have few connections. */
const restAfterMs = 60_000;
/** Pause before the first question is asked again. */
const againMs = 2_000;

type Stage =
  | { readonly kind: 'starting'; readonly failure: Failure | undefined }
  | { readonly kind: 'out'; readonly failure: Failure | undefined }
  | { readonly kind: 'in'; readonly me: WhoAmIResponse };

interface AppProps {
  readonly clients: ConsoleClients;
  readonly clock: PageClock;
}

export function App({ clients, clock }: AppProps) {
  const [stage, setStage] = useState<Stage>({ kind: 'starting', failure: undefined });
  const begin = useCallback(() => {
    void whoAmI(clients).then((found) => {
      if (found.kind === 'in') setStage({ kind: 'in', me: found.me });
      else if (found.kind === 'out') setStage({ kind: 'out', failure: providerFailure() });
      else {
        setStage({ kind: 'starting', failure: found.failure });
        clock.after(againMs, begin);
      }
    });
  }, [clients, clock]);
  useEffect(begin, [begin]);
  switch (stage.kind) {
    case 'starting':
      return stage.failure === undefined ? (
        <p class="starting">Rackwright starts …</p>
      ) : (
        <main class="sign-in-page">
          <h1>Rackwright</h1>
          <FailureBox subject="The console cannot begin" failure={stage.failure} />
        </main>
      );
    case 'out':
      return <SignInPage done={begin} failure={stage.failure} />;
    case 'in':
      return (
        <Inside
          me={stage.me}
          clients={clients}
          clock={clock}
          refresh={begin}
          left={() => setStage({ kind: 'out', failure: undefined })}
        />
      );
  }
}

interface InsideProps extends AppProps {
  readonly me: WhoAmIResponse;
  readonly left: () => void;
  /** Asks anew who has signed in. */
  readonly refresh: () => void;
}

function Inside({ me, clients, clock, left, refresh }: InsideProps) {
  const [isOver, setOver] = useState(false);
  const link = useMemo(
    () => new ConsoleLink(clients, clock, () => setOver(true)),
    [clients, clock],
  );
  useRest(link, clock);
  const leave = useCallback(() => {
    link.close();
    void signOut().then(left);
  }, [link, left]);
  const { racks = [], pools = [] } = me.scope ?? {};
  const isScoped = racks.length > 0 || pools.length > 0;
  const app = useMemo(
    () => ({
      ...{ clients, link, clock, me },
      ...{ caller: { role: me.role, isScoped }, signOut: leave, signInOver: () => setOver(true) },
    }),
    [clients, link, clock, me, isScoped, leave],
  );
  return (
    <ConsoleContext.Provider value={app}>
      <Shell />
      {isOver && (
        <Dialog title="Your sign-in has ended" close={left}>
          <p>Sign in again; the page stays where it is. Close this to leave.</p>
          <SignInForm
            done={() => {
              setOver(false);
              refresh();
              link.restart();
            }}
          />
        </Dialog>
      )}
    </ConsoleContext.Provider>
  );
}

function useRest(link: ConsoleLink, clock: PageClock): void {
  useEffect(() => {
    let cancel = () => {};
    const changed = () => {
      cancel();
      if (document.hidden) cancel = clock.after(restAfterMs, () => link.setShown(false));
      else link.setShown(true);
    };
    document.addEventListener('visibilitychange', changed);
    return () => {
      cancel();
      document.removeEventListener('visibilitychange', changed);
      link.close();
    };
  }, [link, clock]);
}
