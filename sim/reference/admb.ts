/**
 * The specification of ADMB that runs: Algorithms 3 to 6 of Dekel et al., "Robust Distributed
 * Online Prediction", with the repairs and carry-over of this project. It has no codec, no clock
 * and no speed. A sum is the set of its gradients, so that "each gradient counts once" is a
 * statement about sets. A message contains a predictor and a sum; when messages are sent, and
 * whether they arrive, in which order, once or twice, is up to the network. A test shows that
 * `AdmbNode` refines this specification.
 *
 * Sums with a budget of bytes are left out: they contain parts of gradients, so a set does not describe their values. Which
 * inputs they cover is the same as here. The checker `sparse books` adds up the parts.
 *
 * | paper | here |
 * | --- | --- |
 * | Algorithm 3: an input arrives | `learn` |
 * | Algorithm 4: a periodic message to a neighbour | `message`, `sent` |
 * | Algorithm 5: a message arrives | `adopt`, then `keep` |
 * | Algorithm 6: update | `update` |
 * | initialisation and termination of an edge | `connect`, `disconnect` |
 */

/** A gradient of one input, which a run of a node has computed at the predictor that it held. */
interface Gradient<Input> {
  readonly run: Run
  readonly input: Input
  /** Number of updates of that predictor. */
  readonly updates: number
  /** Period of its node in which it first became part of a sum; undefined until then. */
  closedIn: number | undefined
}

/** A node from its start to its crash. A restarted node is another run of the same peer. */
interface Run {
  readonly peer: string
  /** Number of the run. */
  readonly incarnation: number
  /** Distinguishes runs with equal numbers, which a lost disk can cause. */
  readonly nonce: number
}

/** A predictor. Two runs never make the same one. */
export interface Predictor<Input, Content> {
  /** v: the number of updates on its lineage. */
  readonly updates: number
  /** The run that made it; undefined for the starting predictor. */
  readonly origin: Run | undefined
  readonly parent: Predictor<Input, Content> | undefined
  /** The gradients of all batches on its lineage. */
  readonly used: ReadonlySet<Gradient<Input>>
  /** (w, w̄) and the state of the update rule. */
  readonly content: Content
}

/** A message from a node to a neighbour. */
export interface Message<Input, Content> {
  readonly predictor: Predictor<Input, Content>
  /** Gradients for its next update: the sender's own, and those of its other neighbours. */
  readonly sum: ReadonlySet<Gradient<Input>>
}

interface Settings<Input, Content> {
  /** b: the number of gradients of an update. */
  readonly batch: number
  /** S: the number of periods for which unused gradients are carried over; 0 as in the paper. */
  readonly carry: number
  /** The content after an update: w ← rule(sum / count), and its running average. */
  readonly step: (before: Predictor<Input, Content>, batch: ReadonlySet<Gradient<Input>>) => Content
}

/** The predictor that all nodes hold at the start. */
export function start<Input, Content>(content: Content): Predictor<Input, Content> {
  return { updates: 0, origin: undefined, parent: undefined, used: new Set(), content }
}

/**
 * Whether a node that holds `b` adopts `a`: it has more updates, or as many from an origin with a
 * lower index. All nodes order all predictors in the same way, so that the best one wins
 * everywhere.
 */
function isBetter(a: Predictor<unknown, unknown>, b: Predictor<unknown, unknown>): boolean {
  if (a.updates !== b.updates) return a.updates > b.updates
  if (a.origin === b.origin || a.origin === undefined || b.origin === undefined) return false
  if (a.origin.peer !== b.origin.peer) return a.origin.peer < b.origin.peer
  if (a.origin.incarnation !== b.origin.incarnation) return a.origin.incarnation > b.origin.incarnation
  return a.origin.nonce > b.origin.nonce
}

export class SpecifiedNode<Input, Content> {
  readonly run: Run
  readonly #settings: Settings<Input, Content>
  #predictor: Predictor<Input, Content>
  /** All gradients of this run. */
  readonly #history: Gradient<Input>[] = []
  /** The predictors that this run has held. */
  readonly #held: Predictor<Input, Content>[]
  /** Own gradients for the next update. */
  #own: ReadonlySet<Gradient<Input>> = new Set()
  /** The newest sum of each neighbour for the current predictor, empty until it sends one. */
  readonly #sums = new Map<number, ReadonlySet<Gradient<Input>>>()
  #period = 0

  constructor(run: Run, initial: Predictor<Input, Content>, settings: Settings<Input, Content>) {
    this.run = run
    this.#predictor = initial
    this.#held = [initial]
    this.#settings = settings
  }

  get predictor(): Predictor<Input, Content> {
    return this.#predictor
  }

  get own(): ReadonlySet<Gradient<Input>> {
    return this.#own
  }

  /** Gradients for the next update: own ones, and those of the neighbours. */
  get available(): ReadonlySet<Gradient<Input>> {
    return this.#allExcept(undefined)
  }

  /** A period T has passed. */
  tick(): void {
    this.#period++
  }

  /** Algorithm 3: the node has predicted, seen the label, and computed a gradient. */
  learn(input: Input): void {
    const gradient = { run: this.run, input, updates: this.#predictor.updates, closedIn: undefined }
    this.#history.push(gradient)
    this.#own = new Set([...this.#own, gradient])
  }

  /** A neighbour is linked: it has sent nothing yet. */
  connect(edge: number): void {
    this.#sums.set(edge, new Set())
  }

  /** A link has ended: the neighbour's gradients are no longer available through it. */
  disconnect(edge: number): void {
    this.#sums.delete(edge)
  }

  /** Algorithm 4: the message to a neighbour. It does not contain what that neighbour has sent. */
  message(edge: number): Message<Input, Content> {
    return { predictor: this.#predictor, sum: this.#allExcept(edge) }
  }

  /** Algorithm 4: a message with a sum has been sent, so the own gradients in it are closed. */
  sent(): void {
    this.#close()
  }

  /**
   * Algorithm 5, first half: adopts the predictor of a message if it is better.
   * @param knownSince number of updates of the oldest ancestor that the message and earlier ones
   * name @default all are known
   * @returns whether it was better
   */
  adopt(predictor: Predictor<Input, Content>, knownSince = 0): boolean {
    if (!isBetter(predictor, this.#predictor)) return false
    this.#switchTo(predictor, knownSince)
    return true
  }

  /**
   * Algorithm 5, second half: keeps the sum of a message for the current predictor in place of the
   * neighbour's last one. A sum with gradients of this peer, which came back on a cycle or are of
   * an earlier run, is not kept.
   */
  keep(edge: number, { predictor, sum }: Message<Input, Content>): void {
    if (predictor !== this.#predictor || !this.#sums.has(edge)) return
    const containsOwn = [...sum].some(({ run }) => run.peer === this.run.peer)
    this.#sums.set(edge, containsOwn ? new Set() : sum)
  }

  /**
   * Algorithm 6: updates with all available gradients, once there are b.
   * @param isRemainder whether inputs have ended, so that fewer than b suffice @default false
   */
  update(isRemainder = false): void {
    const batch = this.available
    const needed = isRemainder ? 1 : this.#settings.batch
    if (batch.size < needed) throw new Error(`an update with ${batch.size} of ${needed} gradients`)
    const parent = this.#predictor
    for (const gradient of batch) if (parent.used.has(gradient)) throw new Error('a gradient is used twice')
    this.#close()
    this.#switchTo({
      updates: parent.updates + 1,
      origin: this.run,
      parent,
      used: new Set([...parent.used, ...batch]),
      content: this.#settings.step(parent, batch)
    })
  }

  /** Continues with the predictor that the disk of an earlier run holds. */
  restore(predictor: Predictor<Input, Content>): void {
    this.#switchTo(predictor)
  }

  /**
   * Holds another predictor. Sums for the old one are of no use. Own gradients that the new lineage
   * has not used are carried over for S periods after they were closed. A node that does not know
   * the lineage far enough cannot tell, and takes old gradients for used.
   */
  #switchTo(predictor: Predictor<Input, Content>, knownSince = 0): void {
    this.#close()
    const isDecided = knownSince === 0 || this.#held.some(held => held.updates >= knownSince && isOn(held, predictor))
    this.#predictor = predictor
    this.#held.push(predictor)
    for (const edge of this.#sums.keys()) this.#sums.set(edge, new Set())
    this.#own = new Set(
      this.#history.filter(gradient => {
        const isKnown = isDecided || gradient.updates >= knownSince
        return isKnown && !predictor.used.has(gradient) && this.#isCarried(gradient)
      })
    )
  }

  #isCarried({ closedIn = this.#period }: Gradient<Input>): boolean {
    const { carry } = this.#settings
    return carry > 0 && this.#period - closedIn <= carry
  }

  #close(): void {
    for (const gradient of this.#own) gradient.closedIn ??= this.#period
  }

  /**
   * Own gradients, and the sums of neighbours that have no peer in common: through a network that
   * is being linked anew, the same gradient can arrive twice. The larger of two such sums is
   * preferred.
   */
  #allExcept(except: number | undefined): ReadonlySet<Gradient<Input>> {
    const sums = [...this.#sums].filter(([edge]) => edge !== except).map(([, sum]) => sum)
    const peers = new Set<string>()
    const all = new Set(this.#own)
    for (const sum of sums.sort((a, b) => b.size - a.size)) {
      const contributors = new Set([...sum].map(({ run }) => run.peer))
      if ([...contributors].some(peer => peers.has(peer))) continue
      for (const peer of contributors) peers.add(peer)
      for (const gradient of sum) all.add(gradient)
    }
    return all
  }
}

/** Whether `ancestor` is `predictor` or an ancestor of it. */
function isOn(ancestor: Predictor<unknown, unknown>, predictor: Predictor<unknown, unknown>): boolean {
  let one: Predictor<unknown, unknown> | undefined = predictor
  while (one !== undefined && one.updates > ancestor.updates) one = one.parent
  return one === ancestor
}
