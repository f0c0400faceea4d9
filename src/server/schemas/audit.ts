/** Audits of gradient sums. */
import { count, counts, number, object, text } from './parts.js'

export const audit = [
  {
    $id: 'SumAudit',
    description:
      'A gradient sum of a tree neighbour, compared with what its contributors have signed and with the gradients of its inputs.',
    ...object(
      {
        peer: { ...text, description: 'Peer id of the neighbour.' },
        predictor: { $ref: 'PredictorId#' },
        count: { ...count, description: 'Number of gradients in the sum.' },
        contributors: {
          type: 'array',
          items: object(
            {
              id: { ...text, description: 'Peer id.' },
              segments: { ...count, description: 'Parts of its gradients that the sum contains.' },
              signed: {
                ...count,
                description: 'Number of gradients that it has signed; absent without a valid signature.'
              },
              inputs: { ...count, description: 'Number of its inputs; absent if it has sent none.' },
              loss: { ...number, description: 'Their mean loss when they were learned.' },
              labels: { ...counts, description: 'Number of inputs of each class.' },
              reason: { ...text, description: 'Why its gradients could not be computed again.' }
            },
            ['signed', 'inputs', 'loss', 'labels', 'reason']
          )
        },
        signed: {
          type: 'boolean',
          nullable: true,
          description:
            'Whether the contributors have signed what it contains of them; null if some signatures are missing.'
        },
        signedContent: {
          type: 'string',
          enum: ['numbers', 'gradients'],
          description: 'What they have signed: the numbers of gradients and segments, or the gradients as well.'
        },
        agrees: {
          type: 'boolean',
          nullable: true,
          description: 'Whether the sum is that of these inputs; null if not all of them are known.'
        },
        norms: {
          description: 'Norms of the sum, of its difference, and the largest difference that rounding explains.',
          ...object({ sum: number, difference: number, allowed: number })
        },
        reason: { ...text, description: 'Why it disagrees, or is not signed.' }
      },
      ['signedContent', 'norms', 'reason']
    )
  }
] as const
