package deploy_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// The structs name every field of the Kubernetes API that the manifest uses, so that decoding finds misspelt ones.
type (
	metadata struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	probe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		TCPSocket struct {
			Port string `yaml:"port"`
		} `yaml:"tcpSocket"`
		PeriodSeconds    int `yaml:"periodSeconds"`
		TimeoutSeconds   int `yaml:"timeoutSeconds"`
		FailureThreshold int `yaml:"failureThreshold"`
	}
	security struct {
		RunAsUser                int   `yaml:"runAsUser"`
		RunAsGroup               int   `yaml:"runAsGroup"`
		RunAsNonRoot             bool  `yaml:"runAsNonRoot"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
		SeccompProfile struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	}
	variable struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			SecretKeyRef struct {
				Name string `yaml:"name"`
				Key  string `yaml:"key"`
			} `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	container struct {
		Name            string     `yaml:"name"`
		Image           string     `yaml:"image"`
		ImagePullPolicy string     `yaml:"imagePullPolicy"`
		RestartPolicy   string     `yaml:"restartPolicy"`
		Env             []variable `yaml:"env"`
		Ports           []struct {
			Name          string `yaml:"name"`
			ContainerPort int    `yaml:"containerPort"`
		} `yaml:"ports"`
		StartupProbe   *probe `yaml:"startupProbe"`
		ReadinessProbe *probe `yaml:"readinessProbe"`
		LivenessProbe  *probe `yaml:"livenessProbe"`
		Lifecycle      struct {
			PreStop struct {
				Sleep struct {
					Seconds int `yaml:"seconds"`
				} `yaml:"sleep"`
			} `yaml:"preStop"`
		} `yaml:"lifecycle"`
		Resources struct {
			Requests map[string]string `yaml:"requests"`
			Limits   map[string]string `yaml:"limits"`
		} `yaml:"resources"`
		SecurityContext security `yaml:"securityContext"`
		VolumeMounts    []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	podSpec struct {
		TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  *bool       `yaml:"automountServiceAccountToken"`
		SecurityContext               security    `yaml:"securityContext"`
		InitContainers                []container `yaml:"initContainers"`
		Containers                    []container `yaml:"containers"`
		Volumes                       []struct {
			Name      string `yaml:"name"`
			ConfigMap struct {
				Name string `yaml:"name"`
			} `yaml:"configMap"`
			EmptyDir map[string]string `yaml:"emptyDir"`
		} `yaml:"volumes"`
	}
	deployment struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       struct {
			Replicas int `yaml:"replicas"`
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			} `yaml:"selector"`
			Template struct {
				Metadata metadata `yaml:"metadata"`
				Spec     podSpec  `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	configMap struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   metadata          `yaml:"metadata"`
		Data       map[string]string `yaml:"data"`
	}
	service struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       struct {
			Selector map[string]string `yaml:"selector"`
			Ports    []struct {
				Name       string `yaml:"name"`
				TargetPort string `yaml:"targetPort"`
				Port       int    `yaml:"port"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
)

// manifest decodes the three documents of kubernetes/sidecar.yaml.
func manifest(t *testing.T) (pod deployment, conf configMap, front service) {
	t.Helper()
	const file = "kubernetes/sidecar.yaml"
	documents := strings.Split(read(t, file), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("%s has %d documents, want Deployment, ConfigMap, Service", file, len(documents))
	}
	decode(t, file, documents[0], &pod)
	decode(t, file, documents[1], &conf)
	decode(t, file, documents[2], &front)
	if pod.APIVersion+pod.Kind != "apps/v1Deployment" || conf.APIVersion+conf.Kind != "v1ConfigMap" || front.APIVersion+front.Kind != "v1Service" {
		t.Fatalf("%s: kinds %s, %s, %s", file, pod.Kind, conf.Kind, front.Kind)
	}
	return pod, conf, front
}

// kubernetesEnvironment returns the sidecar's variables; a secret stands in for the one that comes from the cluster.
func kubernetesEnvironment(t *testing.T) []string {
	t.Helper()
	pod, _, _ := manifest(t)
	var environ []string
	for _, one := range pod.Spec.Template.Spec.InitContainers[0].Env {
		value := one.Value
		if one.ValueFrom.SecretKeyRef.Name != "" {
			value = strings.Repeat("5ec0", 16)
		}
		environ = append(environ, one.Name+"="+value)
	}
	return environ
}

// TestV1_KubernetesProbes: a native sidecar with three probes on the admin port, of which only readiness asks for readiness.
func TestV1_KubernetesProbes(t *testing.T) {
	pod, _, _ := manifest(t)
	sidecar := pod.Spec.Template.Spec.InitContainers[0]
	if len(pod.Spec.Template.Spec.InitContainers) != 1 || sidecar.RestartPolicy != "Always" {
		t.Fatalf("restartPolicy %q: not a native sidecar", sidecar.RestartPolicy)
	}
	for name, one := range map[string]struct {
		probe *probe
		path  string
	}{
		"startup":   {sidecar.StartupProbe, "/health/live"},
		"liveness":  {sidecar.LivenessProbe, "/health/live"},
		"readiness": {sidecar.ReadinessProbe, "/health/ready"},
	} {
		if one.probe == nil || one.probe.HTTPGet.Path != one.path || one.probe.HTTPGet.Port != "admin" || one.probe.PeriodSeconds == 0 {
			t.Errorf("%s probe: %+v, want %s on the admin port", name, one.probe, one.path)
		}
	}
	loaded := load(t, kubernetesEnvironment(t))
	want := map[string]string{"http": loaded.Listen, "admin": loaded.AdminListen}
	for _, port := range sidecar.Ports {
		if want[port.Name] != ":"+strconv.Itoa(port.ContainerPort) {
			t.Errorf("port %s is %d, the sidecar listens on %q", port.Name, port.ContainerPort, want[port.Name])
		}
		delete(want, port.Name)
	}
	if len(want) != 0 {
		t.Errorf("ports are not declared: %v", want)
	}
}

// TestL1_KubernetesStop: the store outlives the longest hold, and the grace covers its sleep and the sidecar's drain.
func TestL1_KubernetesStop(t *testing.T) {
	pod, _, _ := manifest(t)
	spec := pod.Spec.Template.Spec
	loaded := load(t, kubernetesEnvironment(t))
	sleep := time.Duration(spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if sleep <= loaded.DownloadHold {
		t.Errorf("the store stops %v after the end begins, requests are held for %v", sleep, loaded.DownloadHold)
	}
	grace := time.Duration(spec.TerminationGracePeriodSeconds) * time.Second
	covers(t, "terminationGracePeriodSeconds less preStop", grace-sleep, loaded.Drain)
}

// TestV5_KubernetesUnprivileged: no root, no capability, no writable root, no token of the cluster, limits on memory.
func TestV5_KubernetesUnprivileged(t *testing.T) {
	pod, _, _ := manifest(t)
	spec := pod.Spec.Template.Spec
	if !spec.SecurityContext.RunAsNonRoot || spec.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Errorf("the pod is not locked down: %+v", spec.SecurityContext)
	}
	for _, one := range append(spec.InitContainers, spec.Containers...) {
		context := one.SecurityContext
		if context.RunAsUser == 0 || !context.ReadOnlyRootFilesystem || strings.Join(context.Capabilities.Drop, "") != "ALL" ||
			context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation {
			t.Errorf("%s is not locked down: %+v", one.Name, context)
		}
		if one.Resources.Limits["memory"] == "" || one.Resources.Requests["memory"] == "" || one.Resources.Requests["cpu"] == "" {
			t.Errorf("%s has no resources: %+v", one.Name, one.Resources)
		}
	}
}

// TestV5_KubernetesWiring: labels meet, the service leads to the sidecar, the sidecar to the store's port, volumes exist.
func TestV5_KubernetesWiring(t *testing.T) {
	pod, conf, front := manifest(t)
	spec := pod.Spec.Template.Spec
	labels := pod.Spec.Template.Metadata.Labels
	if app := labels["app"]; app == "" || pod.Spec.Selector.MatchLabels["app"] != app || front.Spec.Selector["app"] != app {
		t.Errorf("labels %v, selector %v, service %v", labels, pod.Spec.Selector.MatchLabels, front.Spec.Selector)
	}
	if len(front.Spec.Ports) != 1 || front.Spec.Ports[0].TargetPort != "http" {
		t.Errorf("the service leads to %+v, want the sidecar's http port and no other", front.Spec.Ports)
	}
	upstream := load(t, kubernetesEnvironment(t)).Upstream
	port := strconv.Itoa(spec.Containers[0].Ports[0].ContainerPort)
	if len(upstream) != 1 || upstream[0].Host != "127.0.0.1:"+port || !strings.Contains(conf.Data["default.conf"], "listen "+port+";") {
		t.Errorf("upstream %v, the store listens on %s: %s", upstream, port, conf.Data["default.conf"])
	}
	volumes := map[string]bool{}
	for _, one := range spec.Volumes {
		volumes[one.Name] = true
		if one.ConfigMap.Name != "" && one.ConfigMap.Name != conf.Metadata.Name {
			t.Errorf("volume %s wants the config map %s, there is %s", one.Name, one.ConfigMap.Name, conf.Metadata.Name)
		}
	}
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		for _, one := range container.VolumeMounts {
			if !volumes[one.Name] {
				t.Errorf("%s: no volume %s", container.Name, one.Name)
			}
		}
	}
}
