package pmi

import (
	"strconv"
	"strings"
)

// spaceName names the key-value space to ranks. There is one in a job.
const spaceName = "grun"

// threadKey is the key of a request's number in version 2, which the response has, too.
const threadKey = "thr" + "id"

// A session is the server's side of one rank's connection.
type session struct {
	*Server
	conn *conn
	rank int
	over bool // finalized or aborted
}

// A request handles a message of a rank. An empty response is not sent.
type request func(*session, message) message

// requests returns the requests of both versions.
func requests(framed bool) map[string]request {
	if framed {
		return map[string]request{
			"fullinit": (*session).fullInit, "job-getid": (*session).jobID, "info-getjobattr": (*session).attribute,
			"kvs-put": (*session).kvsPut, "kvs-get": (*session).kvsGet, "kvs-fence": (*session).kvsFence,
			"finalize": (*session).finalize, "abort": (*session).abort,
		}
	}
	return map[string]request{
		"init": (*session).init, "get_maxes": (*session).maxes, "get_my_kvsname": (*session).name,
		"get_appnum": (*session).appNumber, "get_universe_size": (*session).universe,
		"put": (*session).linePut, "get": (*session).lineGet, "barrier_in": (*session).barrier,
		"finalize": (*session).finalize, "abort": (*session).abort, "spawn": (*session).spawn,
	}
}

// step handles one message.
func (s *session) step() error {
	m, err := s.conn.receive()
	if err != nil {
		return err
	}
	framed := s.conn.framed
	handle, ok := requests(framed)[m.command]
	if !ok {
		handle = (*session).unknown
	}
	response := handle(s, m)
	if response.command == "" {
		return nil
	}
	if thread, ok := m.lookup(threadKey); ok {
		response.fields = append(response.fields, field{threadKey, thread})
	}
	if err := s.conn.send(response); err != nil {
		return err
	}
	s.conn.framed = framed || m.command == "init" && m.get("pmi_version") == "2"
	return nil
}

// refused returns a response with the reason of a refusal. reason has no blanks.
func (s *session) refused(command, reason string) message {
	if s.conn.framed {
		return newMessage(command, "rc", "-1", "errmsg", reason)
	}
	return newMessage(command, "rc", "-1", "msg", reason)
}

// respond returns a response to a request that fails with err, or succeeds.
func (s *session) respond(command string, err error) message {
	if err != nil {
		return s.refused(command, err.Error())
	}
	return newMessage(command, "rc", "0")
}

// unknown refuses a request that this server does not know.
func (s *session) unknown(m message) message {
	if s.conn.framed {
		return s.refused(m.command+"-response", "unsupported")
	}
	return s.refused(m.command+"_result", "unsupported")
}

// started reports that the rank has begun.
func (s *session) started() {
	if s.hooks.Started != nil {
		s.hooks.Started(s.rank)
	}
}

// init responds to the greeting of version 1, which also chooses the version. The format stays that
// of lines until version 2 begins.
func (s *session) init(m message) message {
	version := m.get("pmi_version")
	if version != "1" && version != "2" {
		return s.refused("response_to_init", "unsupported_version")
	}
	if version == "1" {
		s.started()
	}
	return newMessage("response_to_init", "pmi_version", version, "pmi_subversion", m.get("pmi_subversion"), "rc", "0")
}

// fullInit is the response to the first request of PMI-2.
func (s *session) fullInit(message) message {
	s.started()
	return newMessage("fullinit-response", "rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(s.rank),
		"size", strconv.Itoa(s.size), "appnum", strconv.Itoa(s.apps(s.rank)), "debugged", "FALSE", "pmiverbose", "FALSE")
}

func (s *session) maxes(message) message {
	return newMessage("maxes", "kvsname_max", "256", "keylen_max", strconv.Itoa(MaxKey), "vallen_max", strconv.Itoa(MaxValue))
}

func (s *session) name(message) message { return newMessage("my_kvsname", "kvsname", spaceName) }
func (s *session) jobID(message) message {
	return newMessage("job-getid-response", "jobid", spaceName, "rc", "0")
}

func (s *session) appNumber(message) message {
	return newMessage("appnum", "appnum", strconv.Itoa(s.apps(s.rank)))
}

func (s *session) universe(message) message {
	return newMessage("universe_size", "size", strconv.Itoa(s.size))
}

func (s *session) linePut(m message) message {
	return s.respond("put_result", s.put(m.get("key"), m.get("value")))
}

func (s *session) kvsPut(m message) message {
	return s.respond("kvs-put-response", s.put(m.get("key"), m.get("value")))
}

// lineGet looks a key up for a client of version 1, whose lines carry no value with a space.
func (s *session) lineGet(m message) message {
	value, ok := s.get(m.get("key"))
	switch {
	case !ok:
		return s.refused("get_result", "key_not_found")
	case strings.ContainsAny(value, " \n\x00"): // of a rank that speaks version 2
		return s.refused("get_result", "no_line_can_carry_the_value")
	}
	return newMessage("get_result", "rc", "0", "msg", "success", "value", value)
}

func (s *session) kvsGet(m message) message    { return s.find("kvs-get-response", m) }
func (s *session) attribute(m message) message { return s.find("info-getjobattr-response", m) }

// find looks a key up for a client of version 2. The size of the universe is the job's unless a
// rank has put it.
func (s *session) find(response string, m message) message {
	value, ok := s.get(m.get("key"))
	if !ok && m.get("key") == "universeSize" {
		value, ok = strconv.Itoa(s.size), true
	}
	if !ok {
		return newMessage(response, "found", "FALSE", "rc", "0")
	}
	return newMessage(response, "found", "TRUE", "value", value, "rc", "0")
}

func (s *session) barrier(message) message {
	return s.respond("barrier_out", s.await(s.rank))
}

func (s *session) kvsFence(message) message {
	return s.respond("kvs-fence-response", s.await(s.rank))
}

// finalize records that the rank ends in order. No request follows.
func (s *session) finalize(message) message {
	s.over = true
	if s.hooks.Finalized != nil {
		s.hooks.Finalized(s.rank)
	}
	if s.conn.framed {
		return newMessage("finalize-response", "rc", "0")
	}
	return newMessage("finalize_ack", "rc", "0")
}

// abort has no response. The code of version 2 is not sent.
func (s *session) abort(m message) message {
	s.over = true
	code, err := strconv.Atoi(m.get("exitcode"))
	if err != nil || code == 0 {
		code = 1
	}
	if s.hooks.Aborted != nil {
		s.hooks.Aborted(s.rank, code, m.get("msg"))
	}
	return message{}
}

// spawn reads the rest of a request of several lines, and refuses it: the ranks of a job are
// those that it begins with.
func (s *session) spawn(message) message {
	for {
		text, err := rawLine(s.conn.r)
		if err != nil || strings.TrimSpace(text) == "endcmd" {
			return s.refused("spawn_result", "unsupported")
		}
	}
}
