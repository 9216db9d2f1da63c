/** A certificate of erasure as a page to read and to print; its signature is verified here. */

import type { ErasureCertificate, Trust } from '@rackwright/messages';
import { useEffect, useState } from 'preact/hooks';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { type CheckedSignature, verifyStatement } from '../browser/verify.ts';
import { hex, idOf } from '../logic/format.ts';
import { routeOf } from '../logic/route.ts';
import { readStatement, resultOf, sectionsOf } from '../logic/statement.ts';
import { Badge, PageHead } from '../parts/basics.tsx';
import { Unread } from '../parts/unread.tsx';
import { PowerCycle } from './host-disks.tsx';

export function CertificatePage({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  useTopic({ kind: 'racks' });
  const { value, failure, reload } = useLive(name, async (signal) => {
    const [certificate, trust] = await Promise.all([
      clients.erasures.getErasureCertificate({ name }, { signal }),
      clients.erasures.getTrust({}, { signal }),
    ]);
    return { certificate, trust };
  });
  if (value !== undefined && failure === undefined) return <Sheet {...value} />;
  return <Unread name={name} kind="certificate" failure={failure} retry={reload} />;
}

interface SheetProps {
  readonly certificate: ErasureCertificate;
  readonly trust: Trust;
}

function SheetActions({ certificate }: Pick<SheetProps, 'certificate'>) {
  const { name, statement, signature } = certificate;
  return (
    <>
      <button type="button" onClick={() => print()}>
        Print
      </button>
      <button type="button" onClick={() => save(`${idOf(name)}.json`, statement)}>
        Save the statement
      </button>
      <button type="button" onClick={() => save(`${idOf(name)}.json.sig`, signature)}>
        Save the signature
      </button>
    </>
  );
}

function Sheet({ certificate, trust }: SheetProps) {
  const { name, host, statement } = certificate;
  const known = readStatement(statement);
  const verification = useVerification(certificate, trust);
  const deviceText = `${certificate.deviceModel} ${certificate.deviceSerial}`.trim();
  return (
    <article class="sheet">
      <PageHead
        title="Certificate of erasure"
        above={host === '' ? undefined : <a href={routeOf(host, { tab: 'disks' })}>{idOf(host)}</a>}
        actions={<SheetActions certificate={certificate} />}
      />
      <p class={`result${known === undefined || known.level === null ? ' bad' : ''}`}>
        {known === undefined
          ? 'A statement of a form that this page does not know'
          : resultOf(known)}
        . {deviceText}
      </p>
      <p class="result-marks">
        <VerificationBadge verification={verification} />
        <span>
          After a power cycle: <PowerCycle proof={certificate.powerCycleProof} />
        </span>
      </p>
      {known === undefined ? (
        <pre tabIndex={0}>{new TextDecoder().decode(statement)}</pre>
      ) : (
        sectionsOf(known).map(({ heading, fields }) => (
          <section key={heading} class="sheet-section">
            <h2>{heading}</h2>
            <dl class="fields">
              {fields.map(({ label, value }) => (
                <div key={label}>
                  <dt>{label}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))
      )}
      <Digest statement={statement} />
      <footer>
        {name}. This page is a copy; the signed file is what counts. Whoever has the key verifies it
        by <code>openssl dgst -sha256 -verify trust.pem -signature FILE.json.sig FILE.json</code>.
      </footer>
    </article>
  );
}

function useVerification(
  { statement, signature }: ErasureCertificate,
  { erasurePublicKeyPem }: Trust,
): CheckedSignature | undefined {
  const [verification, setVerification] = useState<CheckedSignature | undefined>(undefined);
  useEffect(() => {
    let isOver = false;
    void verifyStatement(statement, signature, erasurePublicKeyPem).then((found) => {
      if (!isOver) setVerification(found);
    });
    return () => {
      isOver = true;
    };
  }, [statement, signature, erasurePublicKeyPem]);
  return verification;
}

interface VerificationProps {
  readonly verification: CheckedSignature | undefined;
}

function VerificationBadge({ verification }: VerificationProps) {
  switch (verification?.kind) {
    case undefined:
      return <span class="quiet">verifying the signature …</span>;
    case 'valid':
      return <Badge tone="good">signature verified by this browser</Badge>;
    case 'invalid':
      return <Badge tone="bad">the signature does not verify</Badge>;
    case 'impossible':
      return <Badge tone="warn">signature not verified: the page does not come by TLS</Badge>;
  }
}

function Digest({ statement }: { readonly statement: Uint8Array }) {
  const [digest, setDigest] = useState('');
  useEffect(() => {
    if (!isSecureContext) return;
    void crypto.subtle.digest('SHA-256', Uint8Array.from(statement)).then((bytes) => {
      setDigest(hex(new Uint8Array(bytes)));
    });
  }, [statement]);
  return digest === '' ? null : (
    <p class="digest">
      SHA-256 of the signed file: <code>{digest}</code>
    </p>
  );
}

function save(fileName: string, bytes: Uint8Array): void {
  const url = URL.createObjectURL(new Blob([Uint8Array.from(bytes)]));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(url);
}
