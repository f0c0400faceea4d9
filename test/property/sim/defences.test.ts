/**
 * Mutation test: each defence against hostile nodes is disabled in turn.
 */
import { describeMutants, hostile } from '../../support/mutants.js'

/** One hostile node and one other do not suffice. */
const JUMPS = { signed: true, trust: { signers: 3 }, gate: false }

/** Each node has one input a millisecond. */
const QUOTA = { interval: 1, trust: { rate: 2000 }, adversaries: hostile('empty-batches') } as const

/** Batches have room for all names that it invents. */
const INVENTED = { signed: true, sums: 'exact', batch: 64, adversaries: hostile('invented-names') } as const

/** Frames that arrive are known to have been taken only then. */
const ORDERED = { delay: 'constant', loss: 0, reorder: 0 } as const

/** It signs two predictors with one name, which proves that it is hostile. */
const EQUIVOCATION = { topology: 'overlay', signed: true, adversaries: hostile('equivocation') } as const

describeMutants('defences', [
  {
    without: 'a limit of frames that are taken and not acknowledged',
    changes: [
      { file: 'src/admb/core/frame-receiver.js', from: 'if (edge.isWithheld(frame.received))', to: 'if (false)' }
    ],
    breaks: ['withholding'],
    scenario: { ...ORDERED, nodes: 3, period: 1, inputs: 600, adversaries: hostile('withholding') }
  },
  {
    without: 'a distinction between frames that are taken and frames on their way',
    changes: [
      { file: 'src/admb/core/edge.js', from: 'Math.max(this.#receivedByNeighbour, sequence)', to: 'this.#sent' }
    ],
    breaks: ['acceptance'],
    scenario: { ...ORDERED, batch: 2, inputs: 400, latency: 20, period: 1 }
  },
  {
    without: 'a distinction between frames that are taken before and after the last one of the neighbour',
    changes: [
      { file: 'src/admb/core/edge.js', from: 'received >= this.#receivedBefore', to: 'received >= this.taken' }
    ],
    breaks: ['acceptance'],
    scenario: { ...ORDERED, batch: 2, inputs: 400, latency: 1, period: 1, bandwidth: 20 }
  },
  {
    without: 'a limit of the gradients of a segment',
    changes: [{ file: 'src/admb/wire/frame.js', from: 'if (count > most * segments)', to: 'if (false)' }],
    breaks: ['size'],
    scenario: { adversaries: hostile('huge-counts') }
  },
  {
    without: 'a limit of the gradients of all neighbours together',
    changes: [
      {
        file: 'src/admb/core/neighbour-sums.js',
        from: 'return gradients <= MAX_SHARE && contributors <= FRAME_LIMITS.contributors;',
        to: 'return true;'
      }
    ],
    breaks: ['storable'],
    scenario: { adversaries: hostile('huge-counts') }
  },
  {
    without: 'a limit of what contributors claim',
    seed: 22,
    changes: [
      { file: 'src/admb/trust/quotas.js', from: 'return count <= this.#availableOf(origins)', to: 'return true' }
    ],
    breaks: ['quota'],
    scenario: QUOTA
  },
  {
    without: 'a charge for the gradients that are used',
    seed: 26,
    changes: [{ file: 'src/admb/trust/quotas.js', from: '- (charges.get(origin) ?? 0)', to: '' }],
    breaks: ['quota'],
    scenario: QUOTA
  },
  {
    without: 'a gate that is obeyed',
    seed: 3,
    changes: [
      {
        file: 'src/admb/trust/trust.js',
        from: "report({ kind: 'rejected', predictor, from }); return false;",
        to: "report({ kind: 'rejected', predictor, from }); return true;"
      }
    ],
    breaks: ['gate'],
    scenario: { gate: true }
  },
  {
    without: 'a wait before a refused predictor is judged again',
    seed: 49,
    changes: [{ file: 'src/admb/trust/gate.js', from: 'this.#inputs < refused.until', to: 'false' }],
    breaks: ['gate'],
    scenario: { gate: true, adversaries: hostile('forged-predictor') }
  },
  {
    without: 'a wait that doubles with each refusal',
    seed: 48,
    changes: [
      {
        file: 'src/admb/trust/gate.js',
        from: '2 * (this.#refused.get(key)?.wait ?? RETRY_INPUTS / 2)',
        to: 'RETRY_INPUTS'
      }
    ],
    breaks: ['gate'],
    scenario: { gate: true, nodes: 2, period: 1, inputs: 2000, adversaries: hostile('forged-predictor') }
  },
  {
    without: 'verification of signatures',
    changes: [
      {
        file: 'src/admb/trust/authenticity.js',
        from: 'if (!signer.verify(id.origin, signedBytes(statement), signature))',
        to: 'if (false)'
      }
    ],
    breaks: ['authentic'],
    scenario: { signed: true, adversaries: hostile('replayed-signatures') }
  },
  {
    without: 'attribution to the maker (the neighbour that passes on a second header is blamed)',
    changes: [
      {
        file: 'src/admb/trust/authenticity.js',
        from: 'else if (!isSame)',
        to: 'else if (!isSame) throw new FrameError("a second header"); else if (false)'
      }
    ],
    breaks: ['acceptance'],
    scenario: { signed: true, adversaries: hostile('equivocation') }
  },
  {
    without: 'verification of proofs',
    changes: [
      {
        file: 'src/admb/trust/equivocation.js',
        from: 'if (areEqual(first.rest, second.rest) || !isValid(first) || !isValid(second))',
        to: 'if (false)'
      }
    ],
    breaks: ['attribution'],
    scenario: { signed: true, adversaries: hostile('slander') }
  },
  {
    without: 'verification of certificates',
    seed: 14,
    changes: [
      {
        file: 'src/admb/trust/authenticity.js',
        from: 'if (!this.#signer.verify(origin, certifiedBytes(run), certificate))',
        to: 'if (false)'
      }
    ],
    breaks: ['contributors'],
    scenario: INVENTED
  },
  {
    without: 'certificates of all contributors',
    seed: 60,
    changes: [
      {
        file: 'src/admb/trust/authenticity.js',
        from: 'if (certificate === undefined) throw',
        to: 'if (certificate === undefined) continue; if (false) throw'
      }
    ],
    breaks: ['contributors'],
    scenario: INVENTED
  },
  {
    without: 'a limit of one run of each peer in a sum of others',
    changes: [{ file: 'src/admb/trust/authenticity.js', from: 'if (origins.has(origin))', to: 'if (false)' }],
    breaks: ['contributors'],
    scenario: INVENTED
  },
  {
    without: 'a list of contributors that is obeyed',
    seed: 21,
    changes: [{ file: 'src/admb/trust/trust.js', from: 'if (unlisted !== undefined) {', to: 'if (false) {' }],
    breaks: ['contributors'],
    scenario: { ...INVENTED, trust: { bounded: true } }
  },
  {
    without: 'a threshold for jumps',
    changes: [
      {
        file: 'src/admb/trust/jumps.js',
        from: 'return this.#answers(id, makersOf(headers, attestation)) >= needed',
        to: 'return true'
      }
    ],
    breaks: ['jumps'],
    scenario: { ...JUMPS, adversaries: hostile('forged-predictor') }
  },
  {
    without: 'distinct makers (each header of a lineage counts)',
    changes: [{ file: 'src/admb/trust/jumps.js', from: 'headers.map(header => header.id.origin)', to: 'headers' }],
    breaks: ['jumps'],
    scenario: { ...JUMPS, adversaries: hostile('forged-lineage') }
  },
  {
    without: 'a chain of headers that begins at a predictor that the node has held',
    changes: [{ file: 'src/admb/trust/jumps.js', from: 'holds(parent)', to: 'parent.updates > 0' }],
    breaks: ['jumps'],
    scenario: { ...JUMPS, adversaries: hostile('forged-lineage') }
  },
  {
    without: 'verification of vouchers',
    changes: [{ file: 'src/admb/trust/vouchers.js', from: 'if (!signer.verify(', to: 'if (false && !signer.verify(' }],
    breaks: ['jumps'],
    scenario: {
      ...JUMPS,
      ...{ topology: 'star', nodes: 6, inputs: 400, batch: 4, loss: 0, delay: 'constant', latency: 0.5, period: 1 },
      adversaries: hostile('forged-vouchers')
    }
  },
  {
    without: 'a threshold for newcomers (a chain from the starting predictor suffices)',
    changes: [{ file: 'src/admb/trust/jumps.js', from: 'current().updates > 0 &&', to: '' }],
    breaks: ['jumps'],
    scenario: { ...JUMPS, adversaries: hostile('forged-update') }
  },
  {
    without: 'an end of learning at the maximum number of updates',
    changes: [
      {
        file: 'src/admb/core/node.js',
        from: 'return this.predictor.id.updates >= FRAME_LIMITS.updates',
        to: 'return false'
      }
    ],
    breaks: ['storable'],
    scenario: { adversaries: hostile('forged-predictor') }
  },
  {
    without: 'an end of the sessions with a banned peer',
    changes: [{ file: 'src/overlay/sessions.js', from: 'if (held.peer !== peer) continue;', to: 'continue;' }],
    breaks: ['overlay'],
    scenario: { topology: 'overlay', adversaries: hostile('mutation') }
  },
  {
    without: 'a distinction between violations and edges that a peer has dropped',
    changes: [
      {
        file: 'src/overlay/peer-book.js',
        from: 'known.notBefore = now + this.#jitter(this.#strike(known))',
        to: 'this.distrust(peer)'
      }
    ],
    breaks: ['standing'],
    scenario: { topology: 'overlay' }
  },
  {
    without: 'a limit to violators (the neighbour of a banned peer loses trust as well)',
    changes: [
      {
        file: 'src/overlay/sessions.js',
        from: "state.closeWithBye(held.session, 'violation');",
        to: "state.closeWithBye(held.session, 'violation'); for (const child of state.children) state.book.distrust(child.peer);"
      }
    ],
    breaks: ['standing'],
    scenario: { topology: 'overlay', adversaries: hostile('mutation') }
  },
  {
    without: 'the departure from a parent that is proven hostile',
    changes: [{ file: 'src/overlay/sessions.js', from: 'if (held?.peer === peer)', to: 'if (false)' }],
    breaks: ['standing'],
    scenario: EQUIVOCATION
  },
  {
    without: 'a refusal to join a peer that is proven hostile',
    changes: [
      { file: 'src/overlay/joining.js', from: '|| state.book.isDistrusted(now, contact.peer)', to: '' },
      { file: 'src/overlay/peer-book.js', from: ', this.#distrustedUntil(peer));', to: ');' }
    ],
    breaks: ['standing'],
    scenario: EQUIVOCATION
  },
  {
    without: 'a check of frames that leaves the state as it is (the id of a refused frame counts)',
    changes: [
      {
        file: 'src/admb/core/frame-receiver.js',
        from: 'if (frame.sum?.coverage) checkCount(frame.sum.count, frame.sum.coverage, maxBatch);',
        to: 'if (frame.sum?.coverage) { this.#storeSum(edge, frame.sequence, frame.sum); checkCount(frame.sum.count, frame.sum.coverage, maxBatch); }'
      }
    ],
    breaks: ['size']
  }
])
