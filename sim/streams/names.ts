/** What nodes can learn from: drawn at random, or `file`, which whoever runs the simulation reads ahead. */
export const STREAMS = ['logistic', 'least-squares', 'sparse', 'file'] as const
export type StreamName = (typeof STREAMS)[number]
