/**
 * J1 by the evidence: every disk of an available host has a certificate of the host's use epoch,
 * whose signature fits its exact bytes and which says `erased`. Reads the statement as plain JSON.
 */
import { verify } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { store } from '@rackwright/messages';
import { erasureKey } from './control-plane.ts';
import { type JudgedHost, type JudgeParts, machineOf } from './judged.ts';

interface Statement {
  readonly host: { readonly uid: string };
  readonly device: { readonly serial: string };
  readonly useEpoch: number;
  readonly verdict: { readonly kind: string };
  readonly level: string | null;
}

/** The host's uid, and what is behind it. */
const certificateName = /^erasureCertificates\/(.+?)-(\d+(?:-\d+){3}-[0-9a-f]{8})$/;

export class CertificateJudge {
  readonly #parts: JudgeParts;
  readonly #found: (rule: string, text: string) => void;
  readonly #statements = new Map<string, Statement | string>();
  /** Hosts judged in this very state: "key/revision". */
  readonly #judged = new Set<string>();

  constructor(parts: JudgeParts, found: (rule: string, text: string) => void) {
    this.#parts = parts;
    this.#found = found;
  }

  judge(host: JudgedHost): void {
    const { key, revision, record } = host;
    const machine = machineOf(this.#parts.machines, host);
    if (machine === undefined || machine.unseen) return;
    const name = `${key}/${revision}/${machine.name}`;
    if (this.#judged.has(name)) return;
    this.#judged.add(name);
    const statements = record.certified.map(({ certificate }) => this.#statement(certificate));
    for (const { serial } of machine.drives) {
      const useEpoch = Number(record.host?.status?.useEpoch ?? 0n);
      const fits = (each: Statement | string) =>
        typeof each !== 'string' &&
        each.device.serial === serial &&
        each.host.uid === record.host?.uid &&
        each.useEpoch === useEpoch &&
        each.verdict.kind === 'erased' &&
        each.level !== null;
      if (statements.some(fits)) continue;
      const problems = statements.filter((each) => typeof each === 'string').join('; ');
      this.#found('J1', `${key} is available, ${serial} has no valid certificate ${problems}`);
    }
  }

  /** The statement, or what is wrong with it. */
  #statement(certificate: string): Statement | string {
    const known = this.#statements.get(certificate);
    if (known !== undefined) return known;
    const statement = this.#read(certificate);
    this.#statements.set(certificate, statement);
    return statement;
  }

  #read(certificate: string): Statement | string {
    const [, uid, rest] = certificateName.exec(certificate) ?? [];
    const key = `erasureCertificates.${uid}.${rest}`;
    const change = this.#parts.view.storeDisk().changesOf(key).at(-1);
    if (change?.kind !== 'put') return `${certificate} does not exist`;
    const { statement: kept, signature } = fromBinary(store.CertificateRecordSchema, change.value);
    const statement = this.#whole(kept, certificate);
    if (statement === undefined) return `the evidence of ${certificate} does not exist`;
    if (!verify('sha256', statement, erasureKey, signature)) {
      return `the signature of ${certificate} does not fit`;
    }
    return JSON.parse(new TextDecoder().decode(statement));
  }

  /** The bytes that were signed: the evidence of a step is kept once, under its digest. */
  #whole(kept: Uint8Array, certificate: string): Uint8Array | undefined {
    const text = new TextDecoder().decode(kept);
    const digest = /"evidence": "sha256:([0-9a-f]{64})"/.exec(text)?.[1];
    const [, uid] = certificateName.exec(certificate) ?? [];
    const disk = this.#parts.view.storeDisk();
    const change = disk.changesOf(`erasureEvidence.${uid}.${digest}`).at(-1);
    if (change?.kind !== 'put') return undefined;
    const { payload } = fromBinary(store.EvidenceRecordSchema, change.value);
    const encoded = Buffer.from(payload).toString('base64');
    return Buffer.from(text.replace(`"sha256:${digest}"`, () => `"${encoded}"`));
  }
}
