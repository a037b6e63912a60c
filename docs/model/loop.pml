/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition, its row in the progress table, its journal, and two replicas of a service (docs/model/README.md).
 *
 * Offsets are counted from 0 to N; "through" of the code is one less than the counts here. A set of offsets is a mask.
 * Faults come in any number and order. For liveness they end at some time, with `calm`.
 *
 * -DBACK      the store may be put back to an earlier copy, once
 * -DLOG       the log may come back as another one, shorter or not, once
 * -DGAP       retention may remove records
 * -DFAULTS=n  at most n rebalances, crashes and lost answers; without it there is no limit
 * -DSHORT     a log that came back shorter does not grow
 * -DLIVENESS  with the property `progress`
 * -DBUG_x     a mistake that the checks must find
 */

#ifndef N
#define N 3 /* records in the log */
#endif
#define BATCH 2 /* records decided in one transaction, at most */

#define bits(k) ((1 << (k)) - 1)
#define lowest(m) (((m) & 1) -> 0 : (((m) & 2) -> 1 : (((m) & 4) -> 2 : 3)))
#define past_highest(m) (((m) & 8) -> 4 : (((m) & 4) -> 3 : (((m) & 2) -> 2 : (((m) & 1) -> 1 : 0))))
#define larger(a, b) (((a) > (b)) -> (a) : (b))
#define smaller(a, b) (((a) < (b)) -> (a) : (b))
#define lane(r, i) (2 * (r) + (i))

/* What became of a log (Partition.Displacement). */
#define VANISHED 1
#define OUT_OF_RANGE 2
#define REPLACED 3

bit calm;         /* no fault happens any more */
#ifdef FAULTS
byte left = FAULTS;
#define may_fail (!calm && left > 0)
#define failed left--
#else
#define may_fail (!calm)
#define failed skip
#endif
bit assigned;     /* the replica that the group gives the partition to */

/* The log. */
bit log_id;
byte log_low;     /* the oldest record that is still there */
byte log_end = N;

/* The store: the row of `progress`, the journal of each incarnation, the row of `set_aside` for incarnation 0. */
byte s_epoch = 2;
byte s_next;
byte s_published;
bit s_incarnation;
bit s_last_time;  /* the time of the record before s_next is known */
byte s_journal[2];
bit s_aside;

/* For the properties only: what was ever committed, what stands on the output topic, what retention took. */
byte committed[2];
byte output[2];
byte passed;

/* A COMMIT on its way to the store. It may arrive when nobody waits for it any more (`late`). */
bit w_sent[2];
bit w_late[2];
byte w_epoch[2];
byte w_from[2];
byte w_to[2];
bit w_incarnation[2];
byte answer[2];   /* 1: committed, 2: fenced */

/* A replica. */
bit owns[2];      /* has the partition among its Partitions */
bit waits[2];     /* for the answer to a commit */
bit unclaimed[2]; /* must claim again before it decides */
bit new_connection[2];
byte epoch[2];
byte next[2];
bit incarnation[2];
byte published[2];
bit seen[2];      /* the log is known to be the one that was read before */
byte displaced[2];
bit vanished[2];  /* the consumer has noticed that the topic was missing */
bit owes[2];      /* what was decided before, in this incarnation, is to be handed over */
bit owes_aside[2];/* the same for incarnation 0, when the log is another one now */
bit aside[2];     /* incarnation 0 is not known to be published to its end */

/* The publisher's lanes, by replica and incarnation: handed over and not delivered; handed over up to. */
byte flying[4];
byte handed[4];
byte stray[2];    /* on its way, of a lane whose generation is over: reports of it count for nothing */

#ifdef BACK
bit has_copy;
bit went_back;
byte c_epoch;
byte c_next;
byte c_published;
byte c_journal;
bit c_last_time;
#endif

byte i;
byte top;
byte start;

/* ---- Epochs. Only their order matters, so they are kept small. ---- */

#ifdef BACK
#define used(v) (s_epoch == v || c_epoch == v || epoch[0] == v || epoch[1] == v || w_epoch[0] == v || w_epoch[1] == v)
#define lower(e) e = (e > i -> e - 1 : e)
inline tidy_epochs() {
    i = 1;
    top = 0;
    do
    :: top < 8 ->
        if
        :: used(i) -> i++
        :: else ->
            lower(s_epoch); lower(c_epoch); lower(epoch[0]); lower(epoch[1]); lower(w_epoch[0]); lower(w_epoch[1])
        fi;
        top++
    :: else -> break
    od;
    i = 0; top = 0
}
#else
#define tidy(e) e = (e == 0 -> 0 : (e == s_epoch -> 2 : 1))
inline tidy_epochs() {
    tidy(epoch[0]); tidy(epoch[1]); tidy(w_epoch[0]); tidy(w_epoch[1]);
    s_epoch = 2
}
#endif

/* ---- ServiceLoop+Rebalance ---- */

/* ServiceLoop.forget, Publisher.forget: what is on its way is still delivered. */
inline forget(r) {
    owns[r] = 0; unclaimed[r] = 0; new_connection[r] = 0; epoch[r] = 0; next[r] = 0; incarnation[r] = 0;
    published[r] = 0; seen[r] = 0; displaced[r] = 0; vanished[r] = 0; owes[r] = 0; owes_aside[r] = 0; aside[r] = 0;
    handed[lane(r, 0)] = (flying[lane(r, 0)] -> handed[lane(r, 0)] : 0);
    handed[lane(r, 1)] = (flying[lane(r, 1)] -> handed[lane(r, 1)] : 0);
    tidy_epochs()
}

/* ServiceLoop.rejoin: a replica that is fenced lets go of everything. */
inline rejoin(r) {
#ifdef BUG_FENCED_STAYS
    unclaimed[r] = 1
#else
    forget(r)
#endif
}

/* Where the log ends, as the claim is told (ServiceLoop.request). Nothing is known of a log that is not displaced. */
#define is_replaced(r) \
    (displaced[r] == REPLACED || (displaced[r] == OUT_OF_RANGE && log_low <= next[r] - (seen[r] -> 0 : 1)))
#define told_end(r) (is_replaced(r) -> smaller(log_end, next[r] - 1) : log_end)

/*
 * Progress.claim and Partitions.claimed. `held` is the epoch of a renewal, 0 for none; when the answer is lost (`told` is 0),
 * the store has changed and the replica does not know.
 */
inline claim(r, held, told) {
    if
    :: held > 0 && s_epoch > held -> rejoin(r)
    :: else ->
        if
        :: displaced[r] && s_next > told_end(r) ->
            assert(s_incarnation == 0); /* a log is set aside once, and for a reason */
            assert(log_id == 1);
#ifndef BUG_SET_ASIDE_FORGETS
            s_aside = (s_journal[0] & ~bits(s_published)) != 0;
#endif
            s_incarnation = 1; s_next = 0; s_published = 0; s_last_time = 0
        :: else
        fi;
        if
        :: displaced[r] && s_next < log_low ->
            passed = passed | (bits(log_low) & ~bits(s_next)); s_next = log_low; s_last_time = 0
        :: else
        fi;
#if defined(BUG_NO_BUMP)
        skip;
#else
        s_epoch = larger(s_epoch, held) + 1;
#endif
        if
        :: told -> added(r)
        :: else -> if :: owns[r] -> unclaimed[r] = 1 :: else fi
        fi;
        tidy_epochs()
    fi
}

/* Partitions.claimed, with Publisher.handed. */
inline added(r) {
    owns[r] = 1; unclaimed[r] = 0; new_connection[r] = 0;
    epoch[r] = s_epoch; next[r] = s_next; incarnation[r] = s_incarnation; published[r] = s_published;
#ifdef BUG_LOG_NOT_COMPARED
    seen[r] = 1;
#else
    /* the record before the next one may have been removed, which is no gap */
    seen[r] = !s_last_time || s_next == 0 || (displaced[r] && log_low >= s_next);
#endif
    displaced[r] = 0;
    start = lane(r, s_incarnation);
#ifdef BACK
    if
    :: handed[start] > s_next -> /* the store went back behind what was handed over: a new generation */
        assert(stray[r] == 0);
        stray[r] = flying[start]; flying[start] = 0; handed[start] = 0
    :: else
    fi;
#endif
    handed[start] = larger(handed[start], s_published);
#ifdef BUG_STARTS_PAST_WHAT_IS_OWED
    handed[start] = s_next;
#endif
    owes[r] = handed[start] < s_next;
    aside[r] = s_aside;
    owes_aside[r] = s_aside;
    start = 0
}

/* ---- ServiceLoop+Publishing ---- */

/* Delivery reports: Publisher.poll, LaneProgress.advance, Partitions.published. */
inline reported(r, at) {
    if
    :: owns[r] && incarnation[r] == at ->
        published[r] = larger(published[r],
            (flying[lane(r, at)] -> lowest(flying[lane(r, at)]) : handed[lane(r, at)]))
    :: else
    fi
}

/* A message stands on its topic. One producer sends in the order in which it was handed the messages. */
inline append(at, k) {
    assert(committed[at] & (1 << k));                      /* nothing is published that was not committed */
    assert((committed[at] & bits(k) & ~output[at]) == 0);  /* and all that was decided before it, before it */
    assert(at == 0 || (committed[0] & ~output[0]) == 0);
    output[at] = output[at] | (1 << k)
}

/* Publisher.publish with what a transaction decided. */
inline publish(r) {
    flying[lane(r, w_incarnation[r])] =
        flying[lane(r, w_incarnation[r])] | (bits(w_to[r]) & ~bits(w_from[r]));
    handed[lane(r, w_incarnation[r])] = w_to[r]
}

#define idle(r) (owns[r] && !waits[r])
#ifdef BUG_DECIDES_BEFORE_WHAT_IS_OWED
#define is_live(r) (!unclaimed[r] && displaced[r] == 0 && !vanished[r])
#else
#define is_live(r) (!unclaimed[r] && displaced[r] == 0 && !vanished[r] && !owes[r] && !owes_aside[r])
#endif
/* What stands behind the last one handed over, in the journal as it is now. */
#define unpublished(r, at) (s_journal[at] & ~bits(handed[lane(r, at)]))
/* A journal is believed only in the store that was claimed in. */
#ifdef BUG_HANDED_OVER_UNCHECKED
#define may_hand_over(r) true
#else
#define may_hand_over(r) (epoch[r] == s_epoch && next[r] <= s_next)
#endif
#define position(r) (next[r] - (seen[r] -> 0 : 1))

#ifdef BUG_SAVED_BEFORE_DELIVERED
#define delivered_through(r) handed[lane(r, incarnation[r])]
#else
#define delivered_through(r) published[r]
#endif

proctype Replica(bit r) {
    byte k;
end:
    do
    /* partitionsAssigned: a claim without a held epoch. What fails is tried again. */
    :: d_step { !owns[r] && assigned == r -> claim(r, 0, 1) }
    :: d_step { !owns[r] && assigned == r && may_fail -> failed; claim(r, 0, 0) }

    /* partitionsRevoked, partitionsLost. They may come late: the replica was frozen, or cut off. */
    :: d_step { idle(r) && assigned != r -> forget(r) }

    /* claimAgain: a lost answer, a new connection, a log that is not what it was. */
    :: d_step { idle(r) && (unclaimed[r] || new_connection[r] || displaced[r]) -> claim(r, epoch[r], 1) }
    :: d_step { idle(r) && (unclaimed[r] || new_connection[r] || displaced[r]) && may_fail -> failed; claim(r, epoch[r], 0) }

    /* poll, noteDisplaced, Position.check */
    :: d_step { idle(r) && vanished[r] -> vanished[r] = 0; displaced[r] = (displaced[r] -> displaced[r] : VANISHED) }
    :: d_step {
        idle(r) && !vanished[r] && !displaced[r] && (position(r) < log_low || position(r) > log_end) ->
            displaced[r] = OUT_OF_RANGE }
    :: d_step {
        idle(r) && !vanished[r] && !displaced[r] && !seen[r] && position(r) >= log_low && position(r) < log_end ->
            if
            :: log_id == incarnation[r] -> seen[r] = 1
            :: else -> displaced[r] = REPLACED
            fi }

    /* decide: the transaction is sent. */
    :: atomic {
        idle(r) && is_live(r) && seen[r] && !w_sent[r] && next[r] >= log_low && next[r] < log_end ->
            assert(log_id == incarnation[r]); /* a record is never taken for one of another log */
            w_epoch[r] = epoch[r]; w_from[r] = next[r]; w_incarnation[r] = incarnation[r];
            if
            :: w_to[r] = next[r] + 1
            :: next[r] + BATCH <= log_end -> w_to[r] = next[r] + BATCH
            fi;
            w_sent[r] = 1; waits[r] = 1;
#ifdef BUG_PUBLISHED_BEFORE_COMMITTED
            publish(r);
#endif
            skip }

    /* Its answer: Partitions.decided and publish, or fenced. */
    :: d_step {
        waits[r] && answer[r] == 1 ->
            waits[r] = 0; answer[r] = 0; next[r] = w_to[r];
            publish(r);
            w_from[r] = 0; w_to[r] = 0; w_incarnation[r] = 0 }
    :: d_step {
        waits[r] && answer[r] == 2 ->
            waits[r] = 0; answer[r] = 0; w_from[r] = 0; w_to[r] = 0; w_incarnation[r] = 0;
            rejoin(r) }

    /* No answer: run, `unavailable`. The commit may have happened, may happen yet, or never. */
    :: d_step {
        waits[r] && may_fail ->
            failed; waits[r] = 0; unclaimed[r] = 1; answer[r] = 0;
#ifdef BUG_LOST_ANSWER_TAKEN_FOR_SUCCESS
            unclaimed[r] = 0; next[r] = w_to[r]; publish(r);
#endif
            if
            :: w_sent[r] -> w_late[r] = 1
            :: else -> w_from[r] = 0; w_to[r] = 0; w_incarnation[r] = 0
            fi }

    /* workOffOwed, handOver: earlier incarnations first. */
    :: d_step {
        idle(r) && owes_aside[r] && may_hand_over(r) ->
            flying[lane(r, 0)] = flying[lane(r, 0)] | unpublished(r, 0);
#ifdef BUG_NOTHING_TO_HAND_OVER_IS_DELIVERED
            k = unpublished(r, 0);
#endif
            handed[lane(r, 0)] = larger(handed[lane(r, 0)], past_highest(s_journal[0]));
            owes_aside[r] = 0;
#ifdef BUG_NOTHING_TO_HAND_OVER_IS_DELIVERED
            if
            :: k == 0 && s_epoch == epoch[r] ->
                assert((s_journal[0] & ~output[0]) == 0);
                s_aside = 0; aside[r] = 0
            :: else
            fi;
            k = 0
#endif
            }
    :: d_step { idle(r) && (owes[r] || owes_aside[r]) && !may_hand_over(r) -> rejoin(r) }
    :: d_step {
        idle(r) && !owes_aside[r] && owes[r] && may_hand_over(r) ->
            k = unpublished(r, incarnation[r]);
            flying[lane(r, incarnation[r])] = flying[lane(r, incarnation[r])] | k;
            handed[lane(r, incarnation[r])] = larger(next[r], past_highest(k));
            k = 0;
            owes[r] = 0;
            reported(r, incarnation[r]) }

    /* Delivery, by the producer's own thread. */
    :: d_step { stray[r] -> k = lowest(stray[r]); stray[r] = stray[r] & ~(1 << k); append(0, k); k = 0 }
    :: d_step {
        !stray[r] && flying[lane(r, 0)] ->
            k = lowest(flying[lane(r, 0)]);
            flying[lane(r, 0)] = flying[lane(r, 0)] & ~(1 << k);
            append(0, k); k = 0;
            reported(r, 0) }
#ifdef LOG
    :: d_step {
        !stray[r] && !flying[lane(r, 0)] && flying[lane(r, 1)] ->
            k = lowest(flying[lane(r, 1)]);
            flying[lane(r, 1)] = flying[lane(r, 1)] & ~(1 << k);
            append(1, k); k = 0;
            reported(r, 1) }
#endif

    /* saveProgress, Progress.markPublished: some time after the delivery, or never. */
    :: d_step {
        idle(r) && delivered_through(r) > s_published ->
            if
#ifdef BUG_SAVED_WITHOUT_EPOCH
            :: delivered_through(r) <= s_next ->
#else
            :: epoch[r] == s_epoch && delivered_through(r) <= s_next ->
#endif
                s_published = delivered_through(r);
                /* what counts as published stands on its topic */
                assert((s_journal[s_incarnation] & bits(s_published) & ~output[s_incarnation]) == 0)
            :: else -> rejoin(r)
            fi }

    /* note, Progress.markSetAsidePublished: an earlier incarnation is published to its end. */
    :: d_step {
        idle(r) && aside[r] && !owes_aside[r] && !flying[lane(r, 0)] ->
            if
            :: epoch[r] == s_epoch ->
                assert((s_journal[0] & ~output[0]) == 0);
                s_aside = 0; aside[r] = 0
            :: else -> rejoin(r)
            fi }
    od
}

/* ---- Progress.advance and Journal.append, in one transaction ---- */

#ifdef BUG_COMMIT_WITHOUT_EPOCH
#define epoch_fits(r) true
#else
#define epoch_fits(r) (w_epoch[r] == s_epoch)
#endif
#ifdef BUG_COMMIT_WITHOUT_OFFSET
#define offset_fits(r) true
#else
#define offset_fits(r) (w_from[r] == s_next)
#endif

inline execute(r) {
    if
    :: epoch_fits(r) && offset_fits(r) ->
        top = bits(w_to[r]) & ~bits(w_from[r]);
        assert(w_incarnation[r] == s_incarnation);
        assert((s_journal[s_incarnation] & top) == 0);                                  /* decided once */
        assert((bits(w_from[r]) & ~(s_journal[s_incarnation] | (s_incarnation -> 0 : passed))) == 0); /* none skipped */
        s_journal[s_incarnation] = s_journal[s_incarnation] | top;
        committed[s_incarnation] = committed[s_incarnation] | top;
        s_next = w_to[r]; s_last_time = 1; top = 0;
        if :: w_late[r] :: else -> answer[r] = 1 fi
    :: else -> if :: w_late[r] :: else -> answer[r] = 2 fi
    fi;
    arrived(r)
}

inline arrived(r) {
    w_sent[r] = 0; w_epoch[r] = 0;
    if :: w_late[r] -> w_from[r] = 0; w_to[r] = 0; w_incarnation[r] = 0 :: else fi;
    w_late[r] = 0;
    tidy_epochs()
}

proctype Store() {
end:
    do
    :: d_step { w_sent[0] -> execute(0) }
    :: d_step { w_sent[1] -> execute(1) }
    /* What nobody waits for may also never arrive. */
    :: d_step { w_sent[0] && w_late[0] -> arrived(0) }
    :: d_step { w_sent[1] && w_late[1] -> arrived(1) }
    od
}

/* ---- What goes wrong ---- */

/* All memory is lost. A replica that is down is one that does nothing for a while, so it is not kept apart. */
inline crash(r) {
    waits[r] = 0; answer[r] = 0; stray[r] = 0;
    flying[lane(r, 0)] = 0; flying[lane(r, 1)] = 0;
    if
    :: w_sent[r] -> w_late[r] = 1
    :: else -> w_from[r] = 0; w_to[r] = 0; w_incarnation[r] = 0
    fi;
    forget(r)
}

proctype World() {
end:
    do
#ifdef LIVENESS
    :: atomic { !calm -> calm = 1 }
#endif
    :: atomic { may_fail -> failed; assigned = 1 - assigned }
    :: d_step { may_fail -> failed; crash(0) }
    :: d_step { may_fail -> failed; crash(1) }
#ifdef GAP
    :: d_step { !calm && log_low < log_end -> log_low++ }
#endif
#ifdef LOG
    :: atomic {
        /* A log of which nothing was decided may be taken for the one that follows it: nobody can tell, nothing is lost. */
        !calm && log_id == 0 && s_next > 0 ->
            log_id = 1; vanished[0] = owns[0]; vanished[1] = owns[1];
            if
            :: log_end = 0
            :: log_end = 1
            :: log_end = 2
            :: log_end = N
            fi }
#ifndef SHORT
    :: atomic { log_end < N -> log_end++ }
#endif
#endif
#ifdef BACK
    :: d_step {
        !calm && !has_copy && !went_back ->
            has_copy = 1; c_epoch = s_epoch; c_next = s_next; c_published = s_published; c_journal = s_journal[0];
            c_last_time = s_last_time }
    :: d_step {
        !calm && has_copy ->
            has_copy = 0; went_back = 1;
            s_epoch = c_epoch; s_next = c_next; s_published = c_published; s_journal[0] = c_journal;
            s_last_time = c_last_time;
            c_epoch = 0; c_next = 0; c_published = 0; c_journal = 0; c_last_time = 0;
            new_connection[0] = owns[0]; new_connection[1] = owns[1];
            tidy_epochs() }
#endif
    od
}

init {
    atomic { run Replica(0); run Replica(1); run Store(); run World() }
}

/* Every record of the log is decided or named as lost, and everything decided stands on its topic. */
#define everything \
    (s_incarnation == log_id && s_next == log_end \
        && ((s_journal[log_id] | (1 - log_id) * passed) & bits(log_end)) == bits(log_end) \
        && (s_journal[0] & ~output[0]) == 0 && (s_journal[1] & ~output[1]) == 0)

#ifdef LIVENESS
ltl progress { [] (calm -> <> everything) }
#endif
