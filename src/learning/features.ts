/** What can be combined: the features with what each needs and excludes, for the command line, the library and the simulator. */
import { OptionError } from './options.js'

interface Definition {
  /** The option, or another way to say what the feature is. */
  readonly is: string
  /** The key of a scenario of the simulator. @default it has none */
  readonly key?: string
  /** How to get the feature, and how to do without it. @default by giving or removing the option */
  readonly on?: string
  readonly off?: string
  /** Features that must be there, or must not, and why. */
  readonly needs?: Readonly<Record<string, string>>
  readonly excludes?: Readonly<Record<string, string>>
}

const DEFINITIONS = {
  peers: { is: 'a peer', on: 'start a peer', key: 'algorithm=admb' },
  network: { is: 'a network as the model', on: 'give a network (--model mlp)', off: 'use a linear model' },
  stateDirectory: { is: '--dir', on: 'give dir (--dir)' },
  allowList: { is: '--allow', on: 'give allow (--allow FILE)' },
  signedHeaders: { is: 'signed headers', key: 'signed=true' },
  journal: { is: 'a journal', key: 'journal' },
  ruleWithoutSteps: { is: '--rule dual-averaging', key: 'rule', off: 'choose another rule, such as adagrad' },
  adaptiveBatch: {
    is: '--batch MIN..MAX',
    key: 'batchMax',
    off: 'give --batch one number',
    needs: { peers: 'a batch that is chosen together is for peers' },
    excludes: { network: 'the size of a batch is chosen from the weights of a linear model' }
  },
  adaptivePeriod: { is: '--period auto', key: 'autoPeriod', needs: { peers: 'a period is between sums of peers' } },
  newClasses: { is: '--classes ..MAX' },
  latticeSums: {
    is: '--sums lattice',
    key: 'sums=lattice',
    needs: { peers: 'integer sums are sent between peers' },
    excludes: { newClasses: 'the names of added classes need exact sums' }
  },
  boundedTrust: { is: '--trust bounded', key: 'trust=bounded', needs: { peers: 'bounded trust is of peers' } },
  signers: {
    is: 'signers of --trust',
    key: 'trust signers',
    needs: {
      allowList: 'signers counts peers of an allow-list',
      signedHeaders: 'trust signers requires signed headers'
    }
  },
  invited: {
    is: '--allow FILE,invited',
    off: 'remove acceptInvitations',
    needs: { allowList: 'invitations are for networks with an allow-list' }
  },
  localSteps: {
    is: '--local-steps',
    key: 'localSteps',
    needs: { peers: 'local steps are for peers' },
    excludes: {
      adaptiveBatch: 'local steps need a fixed batch',
      boundedTrust: 'local steps send differences of copies, and trust bounds sums of gradients',
      newClasses: 'classes cannot be added between local steps',
      ruleWithoutSteps: 'dual averaging cannot make local steps'
    }
  },
  masterAlgorithm: {
    is: '--algorithm mawo or dmb',
    key: 'algorithm=mawo-overlay or dmb-overlay',
    off: 'choose --algorithm admb',
    needs: { peers: 'an algorithm is for peers' },
    excludes: {
      adaptiveBatch: 'only nodes that may update can choose b',
      localSteps: 'only nodes that may update can make local steps',
      boundedTrust: 'a master is trusted',
      privacy: 'the budget counts the releases of ADMB',
      adversaries: 'a master is trusted'
    }
  },
  localMomentum: {
    is: 'momentum of --local-steps',
    key: 'localMomentum',
    needs: { localSteps: 'momentum is for local steps' }
  },
  sumBytes: {
    is: 'bytes of --local-steps',
    key: 'sumBytes',
    needs: {
      localSteps: 'a budget of bytes is for local steps',
      latticeSums: 'a budget of bytes is for integer sums',
      network: 'a budget of bytes is for networks'
    },
    excludes: { aheadPredictions: 'look-ahead predictions contain what the budget keeps back' }
  },
  privacy: {
    is: '--dp',
    key: 'clip',
    needs: {
      peers: 'privacy is for peers, which send noisy sums',
      stateDirectory: 'the budget of --dp must survive a restart'
    },
    excludes: {
      network: 'networks do not clip the gradient of each input',
      localSteps: 'local steps mix inputs, so --dp excludes them',
      newClasses: 'names of new classes are sent without noise',
      aheadPredictions: 'look-ahead predictions contain own gradients without noise',
      measuredScale: 'moments of the data are in all gradients',
      journal: 'nodes would release inputs again after a restart'
    }
  },
  layerRules: {
    is: '--rule LAYERS:NAME;…',
    off: 'give one rule (--rule NAME)',
    needs: { network: 'a rule for each layer is for networks' }
  },
  aheadPredictions: { is: '--predict-with ahead', off: 'remove --predict-with' },
  measuredScale: { is: '--scale standard', off: 'give --scale none, or a --schema that scales' },
  wholeJournal: { is: '--keep-journal', needs: { stateDirectory: 'the journal is kept in the state directory' } },
  layersOnDisk: {
    is: '--store disk of admb train',
    off: 'remove --store disk',
    on: 'give --store disk',
    needs: { network: '--store disk is for networks' },
    excludes: { validation: '--store disk keeps one predictor, and validation the best as well' }
  },
  partition: {
    is: 'zero of --schedule',
    needs: { network: 'zero divides a network' },
    excludes: { layersOnDisk: 'a partition is in the memory of its hosts' }
  },
  hostMemory: { is: '--host-memory', needs: { layersOnDisk: '--host-memory is for --store disk' } },
  validation: { is: '--holdout or --validation', on: 'give --holdout SHARE or --validation FILE' },
  patience: { is: '--patience', needs: { validation: '--patience is for validation' } },
  adversaries: { is: 'adversaries', key: 'adversaries.nodes', needs: { peers: 'hostile nodes are peers' } }
} as const satisfies Readonly<Record<string, Definition>>

export type Feature = keyof typeof DEFINITIONS
export const features: Readonly<Record<Feature, Definition>> = DEFINITIONS

/** The features that are used. A feature of which a caller does not know is absent, and is not checked. */
export type Active = Readonly<Partial<Record<Feature, boolean>>>

/** Why the features cannot be combined and how to change it; undefined if they can. @param byKey whether scenarios name them */
export function conflictOf(active: Active, byKey = false): string | undefined {
  const without = ({ is, key, off }: Definition) => (byKey && key ? `remove ${key}` : (off ?? `remove ${is}`))
  const having = ({ is, key, on }: Definition) => (byKey && key ? `set ${key}` : (on ?? `give ${is}`))
  for (const name of Object.keys(active) as Feature[]) {
    if (!active[name]) continue
    const { needs = {}, excludes = {} } = features[name]
    const lacking = Object.keys(needs).find(one => active[one as Feature] === false)
    if (lacking) return `${needs[lacking]}: ${having(features[lacking as Feature])}, or ${without(features[name])}`
    const other = Object.keys(excludes).find(one => active[one as Feature])
    if (other) {
      const remedies = [without(features[name]), without(features[other as Feature])]
      return `${excludes[other]}: ${remedies.join(', or ').replace(/^(remove .*), or remove /, '$1 or ')}`
    }
  }
  return undefined
}

/** @throws OptionError if the features cannot be combined */
export function checkFeatures(active: Active): void {
  const conflict = conflictOf(active)
  if (conflict !== undefined) throw new OptionError(conflict)
}

/** The page of what features need and exclude, which `npm run docs` writes. */
export function featuresPage(): string {
  const lines = (Object.values(features) as Definition[]).flatMap(({ is, needs = {}, excludes = {} }) => {
    const of = (name: string) => features[name as Feature].is
    return [
      ...Object.entries(needs).map(([name, why]) => `| ${is} | needs | ${of(name)} | ${why} |\n`),
      ...Object.entries(excludes).map(([name, why]) => `| ${is} | excludes | ${of(name)} | ${why} |\n`)
    ]
  })
  return `# What can be combined

The command line, the library and the simulator check this one table. \`npm run docs\` writes this page.

| feature | | other | why |
| --- | --- | --- | --- |
${lines.join('')}`
}
