/** What stands around every page: the way to the others, the connection, who has signed in. */

import { enumWord, RoleSchema } from '@rackwright/messages';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../browser/console.ts';
import { useConnection, useNow, useRoute } from '../browser/hooks.ts';
import { ago, span, utc } from '../logic/format.ts';
import { formatRoute, type Route } from '../logic/route.ts';
import { AuditPage } from './audit.tsx';
import { BrakesPage } from './brakes.tsx';
import { CertificatePage } from './certificate.tsx';
import { DiscoveryPage } from './discovery.tsx';
import { HostPage } from './host.tsx';
import { HostsPage } from './hosts.tsx';
import { OverviewPage } from './overview.tsx';
import { PoolPage } from './pool.tsx';
import { PoolsPage } from './pools.tsx';
import { RackPage } from './rack.tsx';
import { WorkflowPage } from './workflow.tsx';
import { WorkflowsPage } from './workflows.tsx';

const sections = [
  ['', 'Fleet'],
  ['hosts', 'Hosts'],
  ['pools', 'Pools'],
  ['workflows', 'Workflows'],
  ['discovery', 'Discovery'],
  ['brakes', 'Brakes'],
  ['audit', 'Audit'],
] as const;

export function Shell() {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const page = route.path.join('/');
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = page === '' ? 'Rackwright' : `${page} · Rackwright`;
    // Who reads by ear hears the new page; who came by its address is left where they are.
    if (!isFirst.current) main.current?.querySelector('h1')?.focus();
    isFirst.current = false;
    scrollTo(0, 0);
  }, [page]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => skip(event, main.current)}>
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href={formatRoute([])}>
          Rackwright
        </a>
        <nav aria-label="Places">
          {sections.map(([path, title]) => (
            <a
              key={path}
              href={formatRoute(path === '' ? [] : [path])}
              aria-current={sectionOf(route) === path ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <Account />
      </header>
      <ConnectionBanner />
      <main ref={main} id="main" tabIndex={-1}>
        <Page route={route} />
      </main>
    </>
  );
}

function skip(event: Event, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}

/** Which of the places a page belongs to. */
function sectionOf({ path: [first = ''] }: Route): string {
  switch (first) {
    case 'racks':
      return '';
    case 'erasureCertificates':
      return 'hosts';
    default:
      return first;
  }
}

function Page({ route: { path } }: { readonly route: Route }): ComponentChildren {
  const [first, second, third] = path;
  const name = path.slice(0, 2).join('/');
  switch (first) {
    case undefined:
      return <OverviewPage />;
    case 'hosts':
      if (second === undefined) return <HostsPage />;
      if (third === 'workflows') {
        const workflow = path.slice(0, 4).join('/');
        return <WorkflowPage key={workflow} name={workflow} />;
      }
      return <HostPage key={name} name={name} />;
    case 'racks':
      return second === undefined ? <OverviewPage /> : <RackPage key={name} name={name} />;
    case 'pools':
      return second === undefined ? <PoolsPage /> : <PoolPage key={name} name={name} />;
    case 'erasureCertificates':
      return <CertificatePage key={name} name={name} />;
    case 'workflows':
      return <WorkflowsPage />;
    case 'discovery':
      return <DiscoveryPage />;
    case 'brakes':
      return <BrakesPage />;
    case 'audit':
      return <AuditPage />;
    default:
      return <NoPage />;
  }
}

function NoPage() {
  return (
    <>
      <h1 tabIndex={-1}>There is no such page</h1>
      <p>
        The address names a page that the console does not have.{' '}
        <a href={formatRoute([])}>Go to the fleet.</a>
      </p>
    </>
  );
}

function Account() {
  const { me, signOut } = useConsole();
  const scope = [...(me.scope?.racks ?? []), ...(me.scope?.pools ?? [])].join(', ');
  const role = enumWord(RoleSchema, me.role) ?? 'no role';
  return (
    <div class="account">
      <ConnectionLight />
      <span title={scope === '' ? 'everywhere' : `in ${scope}`}>
        {me.actor} <span class="quiet">{role}</span>
      </span>
      <button type="button" class="plain" onClick={signOut}>
        Sign out
      </button>
    </div>
  );
}

function ConnectionLight() {
  const { kind } = useConnection();
  const texts = { opening: 'connecting', live: 'live', lost: 'not connected', resting: 'resting' };
  return <span class={`light ${kind}`}>{texts[kind]}</span>;
}

/** Says that the data is stale, since when, and what happens. */
function ConnectionBanner() {
  const { link } = useConsole();
  const connection = useConnection();
  const isLost = connection.kind === 'lost';
  const nowMs = useNow(isLost ? 500 : 0);
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (isLost) setWasLost(true);
  }, [isLost]);
  useEffect(() => {
    document.documentElement.toggleAttribute('data-stale', isLost);
  }, [isLost]);
  if (!isLost) {
    return (
      <p class="unseen" role="status">
        {wasLost && connection.kind === 'live' ? 'The control plane is back; all is live.' : ''}
      </p>
    );
  }
  const { heardMs, retryAtMs } = connection;
  const waitMs = Math.max(0, retryAtMs - nowMs);
  return (
    <div class="banner bad connection" role="alert">
      <span>
        <strong>The control plane does not answer.</strong>{' '}
        {heardMs === undefined ? (
          'Nothing has come from it yet.'
        ) : (
          <>
            What you see is stale since <time title={utc(heardMs)}>{utc(heardMs).slice(11)}</time>.
          </>
        )}{' '}
        It is tried again by itself.
      </span>
      <span aria-live="off" class="quiet">
        {heardMs !== undefined && `heard ${ago(Math.max(nowMs, heardMs), heardMs)}, `}
        {waitMs > 0 ? `next try in ${span(waitMs)}` : 'trying'}
      </span>
      <button type="button" onClick={() => link.retryNow()}>
        Try now
      </button>
    </div>
  );
}
